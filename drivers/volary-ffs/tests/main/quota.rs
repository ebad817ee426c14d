//! Quotas: what is charged, what is refused, and the quota files as a reader of the
//! structures of 4.4BSD and FreeBSD finds them.

use crate::volumes::{attach, check, clean, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Cancel, CheckMode, Create, Cred, Ctx, Error, Fs, Kind, Mode, Name, NodeId, Quota, QuotaLimits,
    QuotaOf, RenameFlags, Result, SetAttr, SetQuota, Time,
};
use volary_testkit::rng::Rng;
use volary_testkit::volumes::{Shape, as_root};

pub(crate) const MIB: u64 = 1 << 20;
const WEEK: i64 = 7 * 24 * 60 * 60;
/// Somebody, and their group.
pub(crate) const ANN: u32 = 1000;
pub(crate) const STAFF: u32 = 50;

const SHAPES: [Shape; 4] = [
    shape("ffs1", 8 * MIB).made("quota,block=4096,fragment=512"),
    shape("ffs1", 8 * MIB).made("quota,order=big"),
    shape("ffs2", 8 * MIB).made("quota,block=4096,fragment=512"),
    shape("ffs1", 8 * MIB).made("quota,old,order=big"),
];

pub(crate) fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// A volume on which one user makes files, at a time of the test's.
pub(crate) struct Seat {
    fs: Fs,
    cred: Cred,
    pub(crate) now: i64,
}

impl Seat {
    pub(crate) fn new(fs: &Fs, uid: u32, gid: u32) -> Self {
        Self {
            fs: fs.clone(),
            cred: Cred::new(uid, gid),
            now: 1_000_000,
        }
    }

    pub(crate) fn run<R>(&self, work: impl FnOnce(&Fs, &Ctx<'_>) -> R) -> R {
        let cancel = Cancel::new();
        let cx = Ctx {
            cred: &self.cred,
            now: Time::from_secs(self.now),
            cancel: &cancel,
        };
        work(&self.fs, &cx)
    }

    pub(crate) fn make(&self, text: &str) -> Result<NodeId> {
        let set = SetAttr {
            uid: Some(self.cred.uid),
            gid: Some(self.cred.gid),
            ..SetAttr::mode(0o644)
        };
        self.run(|fs, cx| {
            let (entry, open) = fs.create(cx, fs.root(), name(text), Create::New, &set)?;
            fs.close(cx, open)?;
            Ok(entry.node)
        })
    }

    pub(crate) fn write(&self, node: NodeId, at: u64, len: usize) -> Result<()> {
        self.run(|fs, cx| {
            let open = fs.open(cx, node, Mode::Write)?;
            let written = fs.write(cx, open, Some(at), &vec![7; len]);
            fs.close(cx, open)?;
            written.map(drop)
        })
    }

    pub(crate) fn unlink(&self, text: &str) -> Result<()> {
        self.run(|fs, cx| fs.unlink(cx, fs.root(), name(text)))
    }

    pub(crate) fn limit(&self, of: QuotaOf, id: u32, bytes: QuotaLimits, nodes: QuotaLimits) {
        let (bytes, nodes) = (Some(bytes), Some(nodes));
        let set = SetQuota::Limits { id, bytes, nodes };
        self.run(|fs, cx| fs.set_quota(cx, of, &set)).expect("set");
    }

    pub(crate) fn quota(&self, of: QuotaOf, id: u32) -> Quota {
        let found = self.run(|fs, cx| fs.quota(cx, of, id)).expect("quota");
        found.quota.filter(|quota| quota.id == id).unwrap_or(Quota {
            id,
            ..Quota::default()
        })
    }
}

pub(crate) fn bounds(soft: impl Into<Option<u64>>, hard: impl Into<Option<u64>>) -> QuotaLimits {
    QuotaLimits {
        soft: soft.into(),
        hard: hard.into(),
    }
}

pub(crate) const NONE: QuotaLimits = QuotaLimits {
    soft: None,
    hard: None,
};

pub(crate) fn is_refused<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.expect_err("refused").kind(), Kind::Quota);
}

pub(crate) fn end(fs: &Fs, dev: &Arc<MemDevice>) {
    as_root(|cx| fs.detach(cx).expect("detach"));
    clean(dev.clone()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn hard_limits_are_never_passed_but_by_root() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let (ann, root) = (Seat::new(&fs, ANN, STAFF), Seat::new(&fs, 0, 0));
        ann.limit(QuotaOf::Users, ANN, bounds(None, 32 << 10), bounds(None, 3));
        let one = ann.make("one").expect("the first");
        ann.write(one, 0, 32 << 10).expect("all that may be");
        is_refused(ann.write(one, 32 << 10, 1));
        assert_eq!(ann.quota(QuotaOf::Users, ANN).bytes.used, 32 << 10);
        ann.write(one, 0, 100).expect("in place");
        ann.make("two").expect("the second");
        ann.make("three").expect("the third");
        is_refused(ann.make("four"));
        let used = ann.quota(QuotaOf::Users, ANN);
        assert_eq!((used.bytes.used, used.nodes.used), (32 << 10, 3));
        let gone = ann.run(|fs, cx| fs.lookup(cx, fs.root(), name("four")));
        assert_eq!(gone.expect_err("not made").kind(), Kind::NotFound);
        // The group has what its members have, and no limit.
        let group = ann.quota(QuotaOf::Groups, STAFF);
        assert_eq!((group.bytes.used, group.nodes.used), (32 << 10, 3));
        root.write(one, 32 << 10, 9000).expect("root may");
        ann.unlink("one").expect("unlink");
        assert_eq!(ann.quota(QuotaOf::Users, ANN).nodes.used, 2);
        assert_eq!(ann.quota(QuotaOf::Users, ANN).bytes.used, 0);
        ann.make("four").expect("there is room again");
        end(&fs, &dev);
    }
}

#[test]
fn a_soft_limit_is_passed_until_its_grace_ends() {
    let dev = SHAPES[2].device();
    let fs = attach(dev.clone(), "");
    let mut ann = Seat::new(&fs, ANN, STAFF);
    ann.limit(QuotaOf::Groups, STAFF, NONE, bounds(1, 3));
    ann.make("one").expect("within");
    assert_eq!(ann.quota(QuotaOf::Groups, STAFF).nodes.until, None);
    ann.make("two").expect("past it");
    let until = Some(Time::from_secs(ann.now + WEEK));
    assert_eq!(ann.quota(QuotaOf::Groups, STAFF).nodes.until, until);
    ann.now += WEEK + 1;
    is_refused(ann.make("three"));
    ann.unlink("one").expect("less");
    assert_eq!(ann.quota(QuotaOf::Groups, STAFF).nodes.until, None);
    ann.make("three").expect("a new time of grace");
    let grace = volary_core::QuotaGrace {
        bytes: 60,
        nodes: 30,
    };
    let set = |fs: &Fs, cx: &Ctx<'_>| fs.set_quota(cx, QuotaOf::Groups, &SetQuota::Grace(grace));
    ann.run(set).expect("grace");
    ann.unlink("two").expect("less");
    ann.make("four").expect("past it");
    let until = Some(Time::from_secs(ann.now + 30));
    assert_eq!(ann.quota(QuotaOf::Groups, STAFF).nodes.until, until);
    let report = ann.run(|fs, cx| fs.quota(cx, QuotaOf::Groups, 0));
    assert_eq!(report.expect("report").grace, grace);
    end(&fs, &dev);
}

#[test]
fn who_gets_a_file_pays_for_it() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let (ann, root) = (Seat::new(&fs, ANN, STAFF), Seat::new(&fs, 0, 0));
        let file = ann.make("file").expect("make");
        ann.write(file, 0, 100 << 10).expect("write");
        let before = ann.quota(QuotaOf::Users, ANN).bytes.used;
        assert!(before >= 100 << 10, "indirect blocks count");
        // A user far behind in the file: a record of its own block.
        let far = if shape.make.contains("old") {
            60_000
        } else {
            3_000_000_000
        };
        let owner = SetAttr {
            uid: Some(far),
            ..SetAttr::default()
        };
        root.run(|fs, cx| fs.setattr(cx, file, &owner))
            .expect("chown");
        assert_eq!(ann.quota(QuotaOf::Users, ANN).bytes.used, 0);
        assert_eq!(ann.quota(QuotaOf::Users, far).bytes.used, before);
        assert_eq!(ann.quota(QuotaOf::Groups, STAFF).bytes.used, before);
        // A group that has no room for it does not get it.
        ann.limit(QuotaOf::Groups, 51, bounds(None, 4096), NONE);
        let group = SetAttr {
            gid: Some(51),
            ..SetAttr::default()
        };
        is_refused(ann.run(|fs, cx| fs.setattr(cx, file, &group)));
        assert_eq!(ann.quota(QuotaOf::Groups, STAFF).bytes.used, before);
        end(&fs, &dev);
    }
}

#[test]
fn a_file_without_a_name_counts_until_it_is_closed() {
    let dev = SHAPES[0].device();
    let fs = attach(dev.clone(), "");
    let ann = Seat::new(&fs, ANN, STAFF);
    let file = ann.make("file").expect("make");
    ann.write(file, 0, 4096).expect("write");
    ann.run(|fs, cx| {
        let open = fs.open(cx, file, Mode::Read).expect("open");
        fs.unlink(cx, fs.root(), name("file")).expect("unlink");
        assert_eq!(ann.quota(QuotaOf::Users, ANN).nodes.used, 1);
        fs.close(cx, open).expect("close");
    });
    assert_eq!(ann.quota(QuotaOf::Users, ANN).nodes.used, 0);
    end(&fs, &dev);
}

#[test]
fn nobody_changes_the_quota_files() {
    let dev = SHAPES[1].device();
    let fs = attach(dev.clone(), "");
    let root = Seat::new(&fs, 0, 0);
    let node = root.run(|fs, cx| {
        let found = fs.lookup(cx, fs.root(), name("quota.user"));
        found.expect("the file").node
    });
    let busy = |e: Error| assert_eq!(e.kind(), Kind::Busy, "{e}");
    busy(root.write(node, 0, 10).expect_err("written"));
    busy(root.unlink("quota.user").expect_err("removed"));
    root.make("other").expect("make");
    root.run(|fs, cx| {
        let to = |from: &str, to: &str| {
            let flags = RenameFlags::REPLACE;
            fs.rename(cx, fs.root(), name(from), fs.root(), name(to), flags)
        };
        busy(to("quota.user", "x").expect_err("moved"));
        busy(to("other", "quota.user").expect_err("replaced"));
        busy(fs.setattr(cx, node, &SetAttr::size(0)).expect_err("cut"));
        fs.set_quota(cx, QuotaOf::Users, &SetQuota::Off)
            .expect("off");
        let gone = fs.quota(cx, QuotaOf::Users, 0).expect_err("off");
        assert_eq!(gone.kind(), Kind::NotFound);
    });
    root.make("quota.user").expect("a file like any other");
    end(&fs, &dev);
}

#[test]
fn limits_are_refused_where_they_make_no_sense() {
    let plain = shape("ffs1", 8 * MIB).device();
    let fs = attach(plain.clone(), "");
    let root = Seat::new(&fs, 0, 0);
    let set = |id, bytes| SetQuota::Limits {
        id,
        bytes: Some(bytes),
        nodes: None,
    };
    root.run(|fs, cx| {
        let without = fs.set_quota(cx, QuotaOf::Users, &set(5, bounds(None, 5)));
        assert_eq!(without.expect_err("no quotas").kind(), Kind::NotFound);
        fs.set_quota(cx, QuotaOf::Users, &SetQuota::On).expect("on");
        let of_root = fs.set_quota(cx, QuotaOf::Users, &set(0, bounds(None, 5)));
        assert_eq!(of_root.expect_err("root").kind(), Kind::Invalid);
        let large = fs.set_quota(cx, QuotaOf::Users, &set(5, bounds(None, 1 << 42)));
        assert_eq!(large.expect_err("32 bits").kind(), Kind::TooBig);
        let none = fs.set_quota(cx, QuotaOf::Users, &set(5, bounds(None, 0)));
        none.expect("no room at all");
    });
    let five = Seat::new(&fs, 5, 5);
    let file = five.make("file").expect("an empty file");
    is_refused(five.write(file, 0, 1));
    end(&fs, &plain);
}

/// Returns the records of a quota file that are not all zeros: number, and the eight fields in order.
fn records(image: &Arc<MemDevice>, file: &str, is_big: bool) -> Vec<(u64, [u64; 8])> {
    let fs = crate::attach(&image.to_vec());
    let attr = as_root(|cx| fs.lookup(cx, fs.root(), name(file)).expect(file).attr);
    let bytes = crate::content(&fs, &attr);
    if bytes.starts_with(b"QUOTA64\0") {
        // struct dqhdr64: version, hdrlen, reclen, all big-endian.
        assert_eq!(
            bytes[8..20],
            [0x20, 0x08, 0x11, 0x04, 0, 0, 0, 64, 0, 0, 0, 64]
        );
        assert!(bytes[20..64].iter().all(|&byte| byte == 0));
        let number = |at: &[u8]| u64::from_be_bytes(at.try_into().expect("8"));
        return split(&bytes[64..], 64, &|at| number(at));
    }
    split(&bytes, 32, &|at| {
        let at: [u8; 4] = at.try_into().expect("4");
        u64::from(match is_big {
            true => u32::from_be_bytes(at),
            false => u32::from_le_bytes(at),
        })
    })
}

fn split(bytes: &[u8], len: usize, number: &dyn Fn(&[u8]) -> u64) -> Vec<(u64, [u64; 8])> {
    let all = bytes.chunks(len).zip(0..);
    let used = all.filter(|(record, _)| record.iter().any(|&byte| byte != 0));
    used.map(|(record, id)| {
        let field = |i: usize| number(&record[i * len / 8..(i + 1) * len / 8]);
        (id, std::array::from_fn(field))
    })
    .collect()
}

#[test]
fn the_files_are_those_of_bsd() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let ann = Seat::new(&fs, ANN, STAFF);
        ann.limit(QuotaOf::Users, ANN, bounds(4096, 64 << 10), bounds(1, 10));
        let file = ann.make("file").expect("make");
        ann.write(file, 0, 8192).expect("write");
        end(&fs, &dev);
        let groups = records(&dev, "quota.group", shape.make.contains("big"));
        let its = groups.iter().find(|(id, _)| *id == STAFF.into());
        assert_eq!(its.expect("a record").1, [0, 0, 16, 0, 0, 1, 0, 0]);
        if shape.make.contains("old") {
            // That of users is 4.2BSD's own.
            continue;
        }
        let users = records(&dev, "quota.user", shape.make.contains("big"));
        // dqb_bhardlimit, bsoftlimit, curblocks, ihardlimit, isoftlimit, curinodes, btime, itime:
        // limits are the first number that is refused.
        let until = ann.now as u64 + WEEK as u64;
        let its = users.iter().find(|(id, _)| *id == ANN.into());
        let expected = [129, 9, 16, 11, 2, 1, until, 0];
        assert_eq!(its.expect("a record").1, expected, "{}", shape.name());
        // Root has the root directory and both quota files.
        assert_eq!(users[0].1[5], 3);
    }
}

#[test]
fn the_check_counts_anew() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let ann = Seat::new(&fs, ANN, STAFF);
        ann.limit(QuotaOf::Users, ANN, bounds(None, MIB), NONE);
        as_root(|cx| fs.detach(cx).expect("detach"));
        // Without quotas nothing is counted.
        let fs = attach(dev.clone(), "noquota");
        let file = Seat::new(&fs, ANN, STAFF).make("file").expect("make");
        Seat::new(&fs, ANN, STAFF)
            .write(file, 0, 8192)
            .expect("write");
        Seat::new(&fs, 2_000, 2_000).make("other").expect("make");
        as_root(|cx| fs.detach(cx).expect("detach"));
        let (report, lines) = check(dev.clone(), CheckMode::Look);
        let all = lines.join("\n");
        assert_eq!(report.found, 4, "{all}");
        assert!(lines.iter().all(|line| line.contains("quota")), "{all}");
        let (report, _) = check(dev.clone(), CheckMode::Preen);
        assert_eq!(report.left(), 0);
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
        let fs = attach(dev.clone(), "");
        let ann = Seat::new(&fs, ANN, STAFF);
        let quota = ann.quota(QuotaOf::Users, ANN);
        assert_eq!((quota.bytes.used, quota.nodes.used), (8192, 1));
        assert_eq!(quota.bytes.limits.hard, Some(MIB), "limits stay");
        assert_eq!(ann.quota(QuotaOf::Groups, 2_000).nodes.used, 1);
        end(&fs, &dev);
    }
}

/// Some users make, write, give away and remove; what each has is what a walk counts.
#[test]
fn usage_is_what_a_walk_counts() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let mut rng = Rng::new(7);
        let seats: Vec<_> = (0..5)
            .map(|i| Seat::new(&fs, 900 + i, 30 + i % 2))
            .collect();
        for seat in &seats {
            seat.limit(
                QuotaOf::Users,
                seat.cred.uid,
                bounds(60 << 10, 150 << 10),
                bounds(5, 12),
            );
        }
        let (mut files, mut refused) = (Vec::new(), 0);
        for step in 0..400 {
            let seat = rng.pick(&seats);
            let done = match rng.below(5) {
                0 | 1 => seat.make(&format!("f{step}")).map(|node| {
                    files.push((format!("f{step}"), node));
                }),
                _ if files.is_empty() => Ok(()),
                2 => {
                    let (text, _) = files.swap_remove(rng.index(files.len()));
                    seat.unlink(&text)
                }
                3 => {
                    let set = SetAttr {
                        uid: Some(seat.cred.uid),
                        gid: Some(seat.cred.gid),
                        size: rng.one_in(2).then(|| rng.below(70_000)),
                        ..SetAttr::default()
                    };
                    let node = rng.pick(&files).1;
                    seat.run(|fs, cx| fs.setattr(cx, node, &set)).map(drop)
                }
                _ => seat.write(rng.pick(&files).1, rng.below(90_000), rng.index(60_000)),
            };
            match done {
                Err(e) if e == Kind::Quota => refused += 1,
                done => done.unwrap_or_else(|e| panic!("{}, step {step}: {e}", shape.name())),
            }
        }
        assert!(refused > 10, "{refused} refused");
        end(&fs, &dev);
    }
}

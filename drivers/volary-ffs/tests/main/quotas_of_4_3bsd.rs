//! Quotas of users on volumes of 4.3BSD's format: 4.2BSD's file `quotas`, as a reader of
//! `struct dqblk` of its `h/quota.h` finds it, with warnings in place of times of grace.

use crate::quota::{ANN, MIB, NONE, STAFF, Seat, bounds, end, is_refused, name};
use crate::volumes::{attach, check, clean, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{CheckMode, Fs, Kind, Mode, QuotaGrace, QuotaLimits, QuotaOf, SetQuota, Time};
use volary_testkit::volumes::{Shape, as_root};

const SHAPES: [Shape; 2] = [
    shape("ffs1", 8 * MIB).made("quota,old,block=4096,fragment=512"),
    shape("ffs1", 8 * MIB).made("quota,old,order=big"),
];

/// Bytes of a record.
const LEN: usize = 20;

/// `struct dqblk`.
#[derive(Debug, PartialEq)]
struct Dqblk {
    bhardlimit: u32,
    bsoftlimit: u32,
    curblocks: u32,
    ihardlimit: u16,
    isoftlimit: u16,
    curinodes: u16,
    bwarn: u8,
    iwarn: u8,
}

fn file(fs: &Fs) -> Vec<u8> {
    let attr = as_root(|cx| {
        fs.lookup(cx, fs.root(), name("quotas"))
            .expect("quotas")
            .attr
    });
    crate::content(fs, &attr)
}

fn record(dev: &MemDevice, uid: u32, is_big: bool) -> Dqblk {
    let bytes = file(&crate::attach(&dev.to_vec()));
    let bytes = &bytes[uid as usize * LEN..][..LEN];
    let long = |at: usize| {
        let four = bytes[at..at + 4].try_into().expect("4");
        let read = [u32::from_le_bytes, u32::from_be_bytes][usize::from(is_big)];
        read(four)
    };
    let short = |at: usize| {
        let two = bytes[at..at + 2].try_into().expect("2");
        let read = [u16::from_le_bytes, u16::from_be_bytes][usize::from(is_big)];
        read(two)
    };
    Dqblk {
        bhardlimit: long(0),
        bsoftlimit: long(4),
        curblocks: long(8),
        ihardlimit: short(12),
        isoftlimit: short(14),
        curinodes: short(16),
        bwarn: bytes[18],
        iwarn: bytes[19],
    }
}

/// Sets the warnings that are left to somebody, as logins and `Q_SETWARN` do.
fn warn(dev: &Arc<MemDevice>, uid: u32, left: [u8; 2]) {
    let fs = attach(dev.clone(), "noquota");
    as_root(|cx| {
        let node = fs
            .lookup(cx, fs.root(), name("quotas"))
            .expect("quotas")
            .node;
        let open = fs.open(cx, node, Mode::Write).expect("open");
        let at = uid as usize * LEN + 18;
        fs.write(cx, open, Some(at as u64), &left).expect("write");
        fs.close(cx, open).expect("close");
        fs.detach(cx).expect("detach");
    });
}

#[test]
fn the_file_is_that_of_4_2bsd() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        // The records of the last two lie in two sectors, and in two blocks of 4096 bytes.
        for uid in [ANN, 25, 204] {
            let user = Seat::new(&fs, uid, STAFF);
            user.limit(QuotaOf::Users, uid, bounds(4096, 64 << 10), bounds(1, 10));
            let file = user.make(&format!("f{uid}")).expect("make");
            user.write(file, 0, 8192).expect("write");
        }
        let ids = |fs: &Fs| {
            let (mut from, mut ids) = (0, Vec::new());
            let root = Seat::new(fs, 0, 0);
            let next = |from| root.run(|fs, cx| fs.quota(cx, QuotaOf::Users, from));
            while let Some(quota) = next(from).expect("quota").quota {
                ids.push(quota.id);
                from = quota.id + 1;
            }
            ids
        };
        assert_eq!(ids(&fs), [0, 25, 204, ANN]);
        end(&fs, &dev);
        assert_eq!(
            ids(&attach(dev.clone(), "")),
            [0, 25, 204, ANN],
            "from the file"
        );
        let is_big = shape.make.contains("big");
        for uid in [ANN, 25, 204] {
            // Limits are the first number that is refused.
            let expected = Dqblk {
                bhardlimit: 129,
                bsoftlimit: 9,
                curblocks: 16,
                ihardlimit: 11,
                isoftlimit: 2,
                curinodes: 1,
                bwarn: 3,
                iwarn: 3,
            };
            assert_eq!(
                record(&dev, uid, is_big),
                expected,
                "{}: {uid}",
                shape.name()
            );
        }
        assert_eq!(record(&dev, 0, is_big).curinodes, 3, "root, and both files");
    }
}

#[test]
fn a_soft_limit_is_a_hard_one_when_no_warnings_are_left() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let ann = Seat::new(&fs, ANN, STAFF);
        ann.limit(QuotaOf::Users, ANN, bounds(8192, None), bounds(2, None));
        let file = ann.make("file").expect("make");
        ann.write(file, 0, 20_000).expect("past it");
        assert_eq!(
            ann.quota(QuotaOf::Users, ANN).bytes.until,
            None,
            "not by time"
        );
        end(&fs, &dev);
        warn(&dev, ANN, [0, 0]);
        let fs = attach(dev.clone(), "");
        let (ann, root) = (Seat::new(&fs, ANN, STAFF), Seat::new(&fs, 0, 0));
        is_refused(ann.write(file, 20_000, 9_000));
        let quota = ann.quota(QuotaOf::Users, ANN);
        assert_eq!(quota.bytes.until, Some(Time::from_secs(0)));
        assert_eq!(quota.nodes.until, None, "within");
        ann.make("second").expect("within, with warnings again");
        ann.make("third").expect("past it, with warnings");
        root.write(file, 20_000, 9_000).expect("root may");
        ann.unlink("file").expect("less");
        end(&fs, &dev);
        let left = record(&dev, ANN, shape.make.contains("big"));
        assert_eq!((left.curblocks, left.bwarn, left.iwarn), (0, 3, 3));
        // Who is past a new limit has all warnings.
        warn(&dev, ANN, [0, 0]);
        let fs = attach(dev.clone(), "");
        let ann = Seat::new(&fs, ANN, STAFF);
        ann.limit(QuotaOf::Users, ANN, NONE, bounds(1, None));
        ann.make("fourth").expect("past it, with warnings");
        end(&fs, &dev);
    }
}

#[test]
fn what_it_has_no_room_for_is_refused() {
    let dev = SHAPES[0].device();
    let fs = attach(dev.clone(), "");
    Seat::new(&fs, 0, 0).run(|fs, cx| {
        let grace = QuotaGrace { bytes: 9, nodes: 9 };
        let grace = SetQuota::Grace(grace);
        let refused = fs.set_quota(cx, QuotaOf::Users, &grace);
        assert_eq!(refused.expect_err("warnings").kind(), Kind::Invalid);
        let of_groups = fs.set_quota(cx, QuotaOf::Groups, &grace);
        of_groups.expect("times of grace, as 4.4BSD has them");
        let report = fs.quota(cx, QuotaOf::Users, 0).expect("report");
        assert_eq!(report.grace, QuotaGrace::default());
        let limits = |nodes: u64| SetQuota::Limits {
            id: ANN,
            bytes: None,
            nodes: Some(QuotaLimits {
                soft: None,
                hard: Some(nodes),
            }),
        };
        fs.set_quota(cx, QuotaOf::Users, &limits(65_534))
            .expect("the last one");
        let large = fs.set_quota(cx, QuotaOf::Users, &limits(65_535));
        assert_eq!(large.expect_err("16 bits").kind(), Kind::TooBig);
    });
    end(&fs, &dev);
}

/// 16 bits do not count them: the file says the most that it can, and that is right.
#[test]
fn more_files_than_it_can_count() {
    let dev = shape("ffs1", 24 * MIB)
        .made("quota,old,density=256")
        .device();
    let fs = attach(dev.clone(), "");
    let ann = Seat::new(&fs, ANN, STAFF);
    for i in 0..65_540 {
        ann.make(&format!("{i}")).expect("make");
    }
    assert_eq!(ann.quota(QuotaOf::Users, ANN).nodes.used, 65_540);
    end(&fs, &dev);
    assert_eq!(record(&dev, ANN, false).curinodes, u16::MAX);
}

/// As 4.3BSD-Reno and later keep them on such volumes.
#[test]
fn a_file_of_4_4bsd_is_used_where_there_is_one() {
    let dev = shape("ffs1", 8 * MIB).made("old").device();
    let fs = attach(dev.clone(), "");
    let root = Seat::new(&fs, 0, 0);
    let file = root.make("quota.user").expect("make");
    let mut bytes = vec![0; 32 * (ANN as usize + 1)];
    let its = &mut bytes[32 * ANN as usize..];
    its[12..16].copy_from_slice(&2_u32.to_le_bytes());
    root.run(|fs, cx| {
        let open = fs.open(cx, file, Mode::Write).expect("open");
        fs.write(cx, open, Some(0), &bytes).expect("write");
        fs.close(cx, open).expect("close");
        fs.detach(cx).expect("detach");
    });
    let (report, lines) = check(dev.clone(), CheckMode::Mend);
    assert_eq!((report.found, report.left()), (1, 0), "{lines:?}");
    let fs = attach(dev.clone(), "");
    let ann = Seat::new(&fs, ANN, STAFF);
    ann.make("one").expect("make");
    is_refused(ann.make("two"));
    end(&fs, &dev);
    clean(dev).unwrap();
}

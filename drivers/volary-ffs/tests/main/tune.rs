//! `tune`, `badsect`, the reserve of a volume that is attached, and synchronous writes.

use crate::volumes::{attach, check, clean, shape};
use std::sync::Arc;
use volary_block::{MemDevice, Recorder};
use volary_core::{
    BlockDevice, Cancel, CheckMode, Create, Cred, Ctx, Fact, FileKind, Format, Fs, Kind, Mode,
    Name, Options, Quiet, Result, SetAttr, Time, Tune,
};
use volary_ffs::FFS;
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;
const SHAPES: [Shape; 3] = [
    shape("ffs1", 8 * MIB).made("block=4096,fragment=512"),
    shape("ffs2", 8 * MIB).made("order=big"),
    shape("ffs1", 8 * MIB).made("old,block=4096,fragment=1024,order=big"),
];
/// `ioctl` for all parameters: `_IOW('V', 2, char[256])`.
const TUNE: u32 = 0x4100_5602;

/// `ioctl` for the reserve: `_IOW('V', 1, int)`.
const SET_MINFREE: u32 = 0x4004_5601;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

fn tune(dev: &Arc<MemDevice>, label: Option<&str>, options: &str) -> Result<Vec<Fact>> {
    let how = Tune {
        label: label.map(str::to_owned),
        options: Options::parse(options),
        ..Tune::default()
    };
    FFS.tune(dev.clone(), &how, &Quiet)
}

/// Returns a field of 32 bits of the superblock that stands at `at`.
fn field(dev: &MemDevice, shape: &Shape, at: u64, field: u64) -> u32 {
    let mut bytes = [0; 4];
    dev.read_at(at + field, &mut bytes).expect("read");
    match shape.make.contains("big") {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    }
}

#[test]
fn parameters_are_changed_in_all_superblocks() {
    for shape in SHAPES {
        let dev = shape.device();
        let is_old = shape.make.contains("old");
        let first = if shape.kind == "ffs2" { 65_536 } else { 8192 };
        let facts = tune(&dev, None, "minfree=3,optim=space,maxbpg=77,maxcontig=5");
        assert_eq!(facts.expect("tune").len(), 4);
        let offset = |block: u64| block * u64::from(field(&dev, &shape, first, 52));
        // The replica of group 0 is at fs_sblkno.
        let replica = offset(field(&dev, &shape, first, 8).into());
        for at in [first, replica] {
            let fields = [60, 128, 92, 88].map(|f| field(&dev, &shape, at, f));
            assert_eq!(fields, [3, 1, 77, 5], "{} at {at}", shape.name());
        }
        let labelled = tune(&dev, Some("STICK"), "avgfilesize=4k,avgfpdir=9");
        if is_old {
            assert_eq!(labelled.expect_err("no place").kind(), Kind::Unsupported);
        } else {
            labelled.expect("tune");
            assert_eq!(field(&dev, &shape, first, 1196), 4096);
            assert_eq!(field(&dev, &shape, first, 1200), 9);
            let probe = FFS.probe(&*dev).expect("probe").expect("a volume");
            assert_eq!(probe.label.as_deref(), Some("STICK"));
            tune(&dev, Some(""), "").expect("tune");
            let probe = FFS.probe(&*dev).expect("probe").expect("a volume");
            assert_eq!(probe.label, None);
        }
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    }
}

#[test]
fn what_cannot_be_changed_is_refused_and_nothing_is() {
    let dev = SHAPES[1].device();
    let before = dev.to_vec();
    let kind = |options: &str| tune(&dev, None, options).expect_err(options).kind();
    for options in ["minfree=100", "optim=both", "maxbpg=0", "blocksize=8k"] {
        assert_eq!(kind(options), Kind::Invalid, "{options}");
    }
    for options in ["softupdates=on", "rotdelay=4"] {
        assert_eq!(kind(options), Kind::Unsupported, "{options}");
    }
    let long = "a label that is longer than its room";
    let refused = tune(&dev, Some(long), "minfree=1").expect_err("long");
    assert_eq!(refused.kind(), Kind::Invalid);
    let compact = Tune {
        compact: true,
        ..Tune::default()
    };
    let refused = FFS.tune(dev.clone(), &compact, &Quiet);
    assert_eq!(refused.expect_err("compact").kind(), Kind::Unsupported);
    assert!(dev.to_vec() == before, "something was written");
}

#[test]
fn a_volume_is_marked_dirty_and_clean() {
    let dev = SHAPES[0].device();
    let mark = |dirty| {
        let how = Tune {
            dirty: Some(dirty),
            ..Tune::default()
        };
        FFS.tune(dev.clone(), &how, &Quiet).expect("tune");
    };
    mark(true);
    let (report, lines) = check(dev.clone(), CheckMode::Look);
    assert_eq!(report.found, 1, "{lines:?}");
    mark(false);
    clean(dev.clone()).expect("clean");
}

/// Room in files of one user's, until there is none.
fn fill(fs: &Fs, cx: &Ctx<'_>) -> u64 {
    let (_, open) = fs
        .create(
            cx,
            fs.root(),
            name("fill"),
            Create::Open,
            &SetAttr::default(),
        )
        .expect("create");
    let mut end = 0;
    while let Ok(next) = fs.write(cx, open, Some(end), &[1; 8192]) {
        end = next;
    }
    fs.close(cx, open).expect("close");
    fs.unlink(cx, fs.root(), name("fill")).expect("unlink");
    fs.sync(cx).expect("sync");
    end
}

#[test]
fn the_reserve_is_changed_while_attached() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let (cred, cancel) = (Cred::new(1000, 1000), Cancel::new());
        let ann = Ctx {
            cred: &cred,
            now: Time::from_secs(1),
            cancel: &cancel,
        };
        let before = fill(&fs, &ann);
        as_root(|cx| {
            let open = fs.open(cx, fs.root(), Mode::Read).expect("open");
            let set = |cx: &Ctx<'_>, percent: u32| {
                fs.ioctl(cx, open, SET_MINFREE, &percent.to_le_bytes())
            };
            assert_eq!(set(&ann, 0).expect_err("ann").kind(), Kind::NotPermitted);
            assert_eq!(set(cx, 100).expect_err("all").kind(), Kind::Invalid);
            let free = |cx: &Ctx<'_>| fs.statfs(cx).expect("statfs").available;
            let was = free(&ann);
            set(cx, 40).expect("more");
            assert!(free(&ann) < was);
            let less = fill(&fs, &ann);
            set(cx, 0).expect("none");
            assert_eq!(free(&ann), free(cx));
            let more = fill(&fs, &ann);
            assert!(less < before && before < more, "{less} {before} {more}");
            fs.close(cx, open).expect("close");
            fs.detach(cx).expect("detach");
        });
        let first = if shape.kind == "ffs2" { 65_536 } else { 8192 };
        assert_eq!(field(&dev, &shape, first, 60), 0, "it stays");
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    }
}

/// Returns what `ioctl` takes: options of `tune`, with zeros behind.
fn line(options: &str) -> [u8; 256] {
    let mut line = [0; 256];
    line[..options.len()].copy_from_slice(options.as_bytes());
    line
}

#[test]
fn parameters_are_changed_while_attached_and_the_allocators_go_by_them() {
    // A disk with tracks: blocks of a file have gaps between them by the rotational delay.
    let disk = "block=4096,fragment=512,nsect=32,ntrak=4,cpg=16,maxcontig=1";
    let dev = shape("ffs1", 8 << 20).made(disk).device();
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).expect("open");
        let set = |cx: &Ctx<'_>, options: &str| fs.ioctl(cx, open, TUNE, &line(options));
        let (cred, cancel) = (Cred::new(1000, 1000), Cancel::new());
        let ann = Ctx {
            cred: &cred,
            now: Time::from_secs(1),
            cancel: &cancel,
        };
        let refused = |cx: &Ctx<'_>, options: &str| set(cx, options).expect_err(options).kind();
        assert_eq!(refused(&ann, "rotdelay=4"), Kind::NotPermitted);
        assert_eq!(refused(cx, "rotdelay=4000"), Kind::Invalid);
        assert_eq!(refused(cx, "rotdelays=4"), Kind::Invalid);
        let file = |text: &str| {
            let name = crate::laid::name(text);
            let made = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default());
            let (entry, open) = made.expect("create");
            fs.write(cx, open, Some(0), &[7; 8 * 4096]).expect("write");
            fs.close(cx, open).expect("close");
            volary_testkit::turns::runs(&fs, cx, entry.node).len()
        };
        assert_eq!(file("before"), 1);
        set(cx, "rotdelay=4,maxbpg=100").expect("a delay");
        assert_eq!(file("delayed"), 8);
        // Another would lie in its gaps.
        let delayed = crate::laid::name("delayed");
        fs.unlink(cx, fs.root(), delayed).expect("unlink");
        fs.sync(cx).expect("sync");
        set(cx, "rotdelay=0").expect("none");
        assert_eq!(file("after"), 1);
        set(cx, "rotdelay=7,optim=space").expect("all others");
        fs.detach(cx).expect("detach");
    });
    let shape = shape("ffs1", 8 << 20);
    let fields = [64, 92, 128].map(|at| field(&dev, &shape, 8192, at));
    assert_eq!(fields, [7, 100, 1], "they stay");
    clean(dev).expect("clean");
}

fn numbers(facts: &[Fact]) -> Vec<Option<u64>> {
    facts.iter().map(|fact| fact.number).collect()
}

#[test]
fn bad_sectors_are_put_aside() {
    for shape in SHAPES {
        let dev = shape.device();
        let first = if shape.kind == "ffs2" { 65_536 } else { 8192 };
        let per_fragment = u64::from(field(&dev, &shape, first, 52)) / 512;
        // Two in one fragment, where there is room for two; one far behind.
        let last = 8 * MIB / 512 - 40;
        let sectors = [9000, 9000 + per_fragment - 1, last];
        let facts = FFS.mark_bad(dev.clone(), &sectors).expect("badsect");
        assert_eq!(numbers(&facts), [Some(3), Some(2), Some(0)]);
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
        let again = FFS.mark_bad(dev.clone(), &sectors).expect("again");
        assert_eq!(numbers(&again), [Some(3), Some(0), Some(2)]);
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let bad = fs.lookup(cx, fs.root(), name("BAD")).expect("BAD");
            assert_eq!(bad.attr.kind, FileKind::Dir);
            let aligned = 9000 / per_fragment * per_fragment;
            let file = fs.lookup(cx, bad.node, name(&aligned.to_string()));
            let file = file.expect("the file").attr;
            assert_eq!((file.mode, file.size), (0, per_fragment * 512));
            let open = fs.open(cx, file.node, Mode::Read).expect("open");
            let mut extents = Vec::new();
            fs.extents(cx, open, 0, file.size, &mut extents)
                .expect("extents");
            let place = volary_core::Place::Device(aligned * 512);
            assert_eq!(extents[0].place, place);
            fs.close(cx, open).expect("close");
            // Nothing is put there, however full it becomes.
            fill(&fs, cx);
            fs.detach(cx).expect("detach");
        });
        clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    }
}

#[test]
fn sectors_that_are_in_use_are_refused() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let at = as_root(|cx| {
            let set = SetAttr::default();
            let made = fs.create(cx, fs.root(), name("file"), Create::New, &set);
            let open = made.expect("create").1;
            fs.write(cx, open, Some(0), &[1; 20_000]).expect("write");
            let mut extents = Vec::new();
            fs.extents(cx, open, 0, 1, &mut extents).expect("extents");
            fs.close(cx, open).expect("close");
            fs.detach(cx).expect("detach");
            match extents[0].place {
                volary_core::Place::Device(at) => at / 512,
                place => panic!("{place:?}"),
            }
        });
        let before = dev.to_vec();
        let kind = |sector| {
            let both = [9000, sector];
            let refused = FFS.mark_bad(dev.clone(), &both).expect_err("refused");
            refused.kind()
        };
        assert_eq!(kind(at), Kind::Busy);
        let first = if shape.kind == "ffs2" { 128 } else { 16 };
        for sector in [first, first + 32, 8 * MIB / 512, u64::MAX] {
            assert_eq!(kind(sector), Kind::Invalid, "{sector}");
        }
        assert!(dev.to_vec() == before, "something was written");
    }
}

/// Makes files with something in them, and removes half of them; gives writes and flushes.
fn churn(shape: &Shape, options: &str) -> (u64, u64) {
    let dev = Arc::new(Recorder::counting(shape.device()));
    let fs = attach(dev.clone(), options);
    let before = dev.counts();
    as_root(|cx| {
        for i in 0..200 {
            let text = format!("file {i}");
            let set = SetAttr::default();
            let made = fs.create(cx, fs.root(), name(&text), Create::New, &set);
            let open = made.expect("create").1;
            fs.write(cx, open, Some(0), &[1; 3000]).expect("write");
            fs.close(cx, open).expect("close");
            if i % 2 == 1 {
                fs.unlink(cx, fs.root(), name(&text)).expect("unlink");
            }
        }
        fs.detach(cx).expect("detach");
    });
    let counts = dev.counts();
    clean(dev.clone()).unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    (
        counts.writes - before.writes,
        counts.flushes - before.flushes,
    )
}

#[test]
fn delayed_writes_are_several_times_fewer_than_synchronous_ones() {
    for shape in SHAPES {
        let (writes, flushes) = churn(&shape, "");
        let (sync_writes, sync_flushes) = churn(&shape, "sync");
        println!(
            "{}: {writes} writes and {flushes} flushes delayed, {sync_writes} and {sync_flushes} synchronous",
            shape.name()
        );
        assert!(sync_writes > 5 * writes && sync_flushes > 50 * flushes);
    }
}

/// What a synchronous volume has after its last operation, if nothing is done any more.
#[test]
fn synchronous_changes_are_there_at_once() {
    for shape in SHAPES {
        let dev = shape.device();
        let fs = attach(dev.clone(), "sync");
        as_root(|cx| {
            let set = SetAttr::default();
            let a = fs.mkdir(cx, fs.root(), name("a"), &set).expect("mkdir");
            let made = fs.create(cx, a.node, name("file"), Create::New, &set);
            let (_, open) = made.expect("create");
            fs.write(cx, open, Some(0), b"content").expect("write");
            let mode = SetAttr::mode(0o600);
            fs.setattr(cx, a.node, &mode).expect("chmod");
            drop(fs);
            let found = attach(Arc::new(MemDevice::from_vec(dev.to_vec())), "");
            let a = found.lookup(cx, found.root(), name("a")).expect("a");
            assert_eq!(a.attr.mode, 0o600);
            let file = found.lookup(cx, a.node, name("file")).expect("the file");
            assert_eq!(crate::content(&found, &file.attr), b"content");
        });
        let (report, lines) = check(dev.clone(), CheckMode::Look);
        assert_eq!(report.found, 1, "only the mark: {lines:?}");
    }
}

//! A device that fails: each write, read and flush of a workload in turn, once
//! and for ever. An operation then succeeds or says so, the volume takes no
//! changes after metadata was lost, and what is left can be mended.

use crate::raw::Raw;
use std::sync::Arc;
use volary_block::{Faulty, How, MemDevice, On, When};
use volary_core::{
    Answer, Attach, BlockDevice, Check, CheckMode, Create, Ctx, Format, Fs, Kind, Make, Mode, Name,
    NodeId, Options, Quiet, RenameFlags, Result, SetAttr, Time,
};
use volary_fat::FAT;
use volary_testkit::volumes::as_root;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn image() -> Vec<u8> {
    let dev = Arc::new(MemDevice::new(300 << 10));
    let make = Make {
        options: Options::parse("cluster=512,root-entries=64"),
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat12", &make).unwrap();
    dev.to_vec()
}

/// Creates a file with so many bytes.
fn put(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, file: &str, len: usize) -> Result<()> {
    let (_, open) = fs.create(cx, dir, name(file), Create::Open, &SetAttr::default())?;
    let written = fs.write(cx, open, None, &vec![0x42; len]);
    let closed = fs.close(cx, open);
    written?;
    closed
}

/// Something of everything. Goes on after an error, as programs do, and gives
/// the errors.
fn workload(fs: &Fs) -> Vec<Kind> {
    let mut errors = Vec::new();
    let mut note = |result: Result<()>| errors.extend(result.err().map(|e| e.kind()));
    as_root(|cx| {
        let root = fs.root();
        let made = fs.mkdir(cx, root, name("a directory"), &SetAttr::default());
        let dir = made.as_ref().map_or(root, |e| e.node);
        note(made.map(|_| ()));
        for i in 0..20 {
            note(put(fs, cx, dir, &format!("file number {i}.txt"), i * 300));
            if i % 5 == 4 {
                note(fs.sync(cx));
            }
        }
        note(fs.rename(
            cx,
            dir,
            name("file number 3.txt"),
            root,
            name("moved"),
            RenameFlags::REPLACE,
        ));
        note(fs.rename(
            cx,
            dir,
            name("file number 4.txt"),
            dir,
            name("FILE NUMBER 5.txt"),
            RenameFlags::REPLACE,
        ));
        note(fs.unlink(cx, dir, name("file number 6.txt")));
        note(fs.sync(cx));
        let found = fs.lookup(cx, dir, name("file number 7.txt"));
        note(
            found
                .and_then(|e| fs.setattr(cx, e.node, &SetAttr::size(5)))
                .map(|_| ()),
        );
        note(put(fs, cx, dir, "file number 7.txt", 3000));
        let found = fs.lookup(cx, dir, name("file number 8.txt"));
        let opened = found.and_then(|e| fs.open(cx, e.node, Mode::Read));
        if let Ok(open) = opened {
            let mut buf = vec![0; 4000];
            note(fs.read(cx, open, 0, &mut buf).map(|_| ()));
            note(fs.fsync(cx, open, false));
            note(fs.close(cx, open));
        }
        note(fs.detach(cx));
    });
    errors
}

/// Returns how a check ends that may mend as much as `mode` says: findings that are left.
fn check(image: &[u8], mode: CheckMode) -> (u64, Vec<String>, Vec<u8>) {
    let dev = Arc::new(MemDevice::from_vec(image.to_vec()));
    let how = Check {
        mode,
        now: Time::from_secs(1_700_000_000),
        options: Options::new(),
    };
    let mut said = Vec::new();
    let mut tell = |f: &volary_core::Finding| {
        said.push(format!("{}: {}", f.code, f.message));
        Answer::Yes
    };
    let report = FAT.check(dev.clone(), &how, &mut tell, &Quiet).unwrap();
    (report.left(), said, dev.to_vec())
}

/// Runs the workload with the k-th request of a kind failing; false when there
/// was no such request.
fn run_one(base: &[u8], on: On, when: When, how: How) -> bool {
    let k = match when {
        When::Nth(k) | When::From(k) => k,
    };
    let mem = Arc::new(MemDevice::from_vec(base.to_vec()));
    let dev = Arc::new(Faulty::new(mem.clone()));
    dev.fail(on, when, how);
    let about = format!("{on:?} {when:?} {how:?}");
    let fs = match FAT.attach(dev.clone(), &Attach::default()) {
        Ok(fs) => fs,
        Err(e) => {
            assert!(matches!(e.kind(), Kind::Io), "{about}: {e}");
            assert!(mem.to_vec() == base, "{about}: attaching wrote");
            return dev.seen(on) > k;
        }
    };
    let errors = workload(&fs);
    let reached = dev.seen(on) > k;
    let known = [
        Kind::Io,
        Kind::NoSpace,
        Kind::ReadOnly,
        Kind::NotFound,
        Kind::Stale,
    ];
    for e in &errors {
        assert!(known.contains(e), "{about}: {e:?} in {errors:?}");
    }
    if on != On::Read && reached {
        assert_eq!(errors.last(), Some(&Kind::Io), "{about}: not told at last");
    }
    let after = mem.to_vec();
    if let Err(what) = Raw::new(&after).walk() {
        panic!("{about}: {what}");
    }
    let (left, said, mended) = check(&after, CheckMode::Preen);
    assert_eq!(left, 0, "{about}: {said:#?}");
    let (left, said, _) = check(&mended, CheckMode::Look);
    assert_eq!(left, 0, "{about}: after mending: {said:#?}");
    reached
}

fn run_all(on: On, how: How) {
    let base = image();
    for once in [true, false] {
        let mut k = 0;
        let when = |k| if once { When::Nth(k) } else { When::From(k) };
        while run_one(&base, on, when(k), how) {
            k += 1;
        }
        assert!(k > 0, "the workload has such requests");
    }
}

#[test]
fn every_write_may_fail() {
    run_all(On::Write, How::Io);
}

#[test]
fn every_write_may_be_torn() {
    run_all(On::Write, How::Torn(1));
}

#[test]
fn every_read_may_fail() {
    run_all(On::Read, How::Io);
}

#[test]
fn every_flush_may_fail() {
    run_all(On::Flush, How::Io);
}

#[test]
fn a_failed_read_harms_nothing_else() {
    let mem = Arc::new(MemDevice::from_vec(image()));
    let dev = Arc::new(Faulty::new(mem));
    let fs = FAT.attach(dev.clone(), &Attach::default()).unwrap();
    as_root(|cx| {
        put(&fs, cx, fs.root(), "good", 50_000).unwrap();
        put(&fs, cx, fs.root(), "bad", 2000).unwrap();
        fs.detach(cx).unwrap();
        let fs = FAT.attach(dev.clone(), &Attach::default()).unwrap();
        let bad = fs.lookup(cx, fs.root(), name("bad")).unwrap().node;
        let open = fs.open(cx, bad, Mode::Read).unwrap();
        let mut extents = Vec::new();
        fs.extents(cx, open, 0, 2000, &mut extents).unwrap();
        let volary_core::Place::Device(at) = extents[0].place else {
            panic!("a file lies on the device");
        };
        dev.bad_reads(at..at + 512);
        let mut buf = [0; 2000];
        assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap_err(), Kind::Io);
        put(&fs, cx, fs.root(), "another", 3000).unwrap();
        fs.sync(cx).unwrap();
        dev.heal();
        assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap(), 2000);
        assert!(buf.iter().all(|&b| b == 0x42));
        fs.detach(cx).unwrap();
    });
}

#[test]
fn after_metadata_was_lost_no_change_is_taken() {
    let mem = Arc::new(MemDevice::from_vec(image()));
    let dev = Arc::new(Faulty::new(mem));
    let fs = FAT.attach(dev.clone(), &Attach::default()).unwrap();
    as_root(|cx| {
        put(&fs, cx, fs.root(), "kept", 2000).unwrap();
        fs.sync(cx).unwrap();
        put(&fs, cx, fs.root(), "lost", 2000).unwrap();
        dev.fail(On::Write, When::From(0), How::Io);
        assert_eq!(fs.sync(cx).unwrap_err(), Kind::Io);
        dev.heal();
        let refused = put(&fs, cx, fs.root(), "more", 1).unwrap_err();
        assert_eq!(refused, Kind::ReadOnly);
        assert!(refused.to_string().contains("check it"), "{refused}");
        let kept = fs.lookup(cx, fs.root(), name("kept")).unwrap();
        assert_eq!(kept.attr.size, 2000);
        let told = fs.detach(cx).unwrap_err();
        assert_eq!(told, Kind::Io);
        assert!(told.to_string().contains("check it"), "{told}");
        fs.detach(cx).unwrap();
    });
    assert!(dev.geometry().size > 0);
}

#[test]
fn a_device_without_room_leaves_a_consistent_volume() {
    let base = image();
    for room in (0..60).map(|i| i * 1024) {
        let mem = Arc::new(MemDevice::from_vec(base.clone()));
        let dev = Arc::new(Faulty::new(mem.clone()));
        dev.short_space(room);
        if let Ok(fs) = FAT.attach(dev.clone(), &Attach::default()) {
            workload(&fs);
        }
        let after = mem.to_vec();
        Raw::new(&after)
            .walk()
            .unwrap_or_else(|e| panic!("room {room}: {e}"));
        let (left, said, _) = check(&after, CheckMode::Preen);
        assert_eq!(left, 0, "room {room}: {said:#?}");
    }
}

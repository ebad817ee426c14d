//! The conformance suite on the model, and what the suite does not ask of every
//! driver. Shapes with less ability are run by the testkit's own tests.

use volary_core::{
    Cancel, Caps, Create, Cred, Ctx, FileSystem, Kind, Name, NodeId, OpenId, RenameFlags, Result,
    SetAttr, Time,
};
use volary_mem::{Mem, MemOptions};
use volary_testkit::Suite;

#[test]
fn the_model_holds_to_its_word() {
    let make = || Mem::attach(MemOptions::sized(8 << 20), Time::EPOCH).unwrap();
    Suite::new("mem", make).run();
}

fn n(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

fn with_cx<T>(call: impl FnOnce(&Ctx<'_>) -> T) -> T {
    call(&Ctx {
        cred: &Cred::root(),
        now: Time::from_secs(1000),
        cancel: &Cancel::new(),
    })
}

fn small() -> Mem {
    Mem::new(MemOptions::sized(64 << 10), Time::EPOCH).unwrap()
}

fn create(fs: &Mem, name: &str) -> Result<(NodeId, OpenId)> {
    let set = SetAttr::default();
    let (entry, open) = with_cx(|cx| fs.create(cx, fs.root(), n(name), Create::New, &set))?;
    Ok((entry.node, open))
}

fn free(fs: &Mem) -> (u64, u64) {
    let stat = with_cx(|cx| fs.statfs(cx)).unwrap();
    (stat.free, stat.nodes_free)
}

#[test]
fn all_room_comes_back_when_the_last_name_and_open_are_gone() {
    let fs = small();
    let before = free(&fs);
    let (node, open) = create(&fs, "a").unwrap();
    with_cx(|cx| {
        fs.write(cx, open, Some(10_000), &[1; 10_000]).unwrap();
        fs.setxattr(cx, node, b"user.a", &[2; 100]).unwrap();
        fs.symlink(cx, fs.root(), n("s"), b"target", &SetAttr::default())
            .unwrap();
        fs.unlink(cx, fs.root(), n("a")).unwrap();
        assert_ne!(free(&fs), before);
        fs.close(cx, open).unwrap();
        fs.unlink(cx, fs.root(), n("s")).unwrap();
    });
    assert_eq!(free(&fs), before);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let fs = small();
    let (node, open) = create(&fs, "a").unwrap();
    with_cx(|cx| {
        fs.write(cx, open, Some(0), &[1; 32 << 10]).unwrap();
        let before = (fs.getattr(cx, node).unwrap(), free(&fs));
        let over = [2; 40 << 10];
        for refused in [
            fs.write(cx, open, Some(30 << 10), &over).map(drop),
            fs.write(cx, open, None, &over).map(drop),
            fs.allocate(cx, open, 0, 1 << 40, false),
            fs.setxattr(cx, node, b"user.a", &over),
        ] {
            assert_eq!(refused.unwrap_err(), Kind::NoSpace);
            assert_eq!((fs.getattr(cx, node).unwrap(), free(&fs)), before);
        }
        let huge = fs.write(cx, open, Some(u64::MAX), &over);
        assert_eq!(huge.unwrap_err(), Kind::TooBig);
    });
}

#[test]
fn nodes_are_bounded_too() {
    let fs = small();
    let (_, left) = free(&fs);
    for i in 0..left {
        create(&fs, &format!("f{i}")).unwrap();
    }
    assert_eq!(create(&fs, "over").unwrap_err(), Kind::NoSpace);
}

#[test]
fn a_removed_directory_takes_no_entries() {
    let fs = small();
    with_cx(|cx| {
        let (root, set) = (fs.root(), SetAttr::default());
        let dir = fs.mkdir(cx, root, n("d"), &set).unwrap().node;
        let open = fs.open(cx, dir, volary_core::Mode::Read).unwrap();
        fs.rmdir(cx, root, n("d")).unwrap();
        create(&fs, "a").unwrap();
        let made = fs.mkdir(cx, dir, n("e"), &set);
        assert_eq!(made.unwrap_err(), Kind::NotFound);
        let moved = fs.rename(cx, root, n("a"), dir, n("a"), RenameFlags::REPLACE);
        assert_eq!(moved.unwrap_err(), Kind::NotFound);
        fs.close(cx, open).unwrap();
        assert_eq!(fs.getattr(cx, dir).unwrap_err(), Kind::Stale);
    });
}

#[test]
fn abilities_that_the_driver_lacks_are_not_claimed() {
    let mut options = MemOptions::default();
    options.caps = options.caps.with(Caps::EXTENTS | Caps::CHECKS_ACCESS);
    let fs = Mem::new(options, Time::EPOCH).unwrap();
    assert!(!fs.caps().has(Caps::EXTENTS));
    assert!(!fs.caps().has(Caps::CHECKS_ACCESS));
}

#[test]
fn without_modes_everything_belongs_to_the_owner_named_in_the_options() {
    let mut options = MemOptions {
        uid: 7,
        gid: 8,
        file_mode: 0o640,
        ..MemOptions::default()
    };
    options.caps = options.caps.without(Caps::MODES);
    let fs = Mem::new(options, Time::EPOCH).unwrap();
    with_cx(|cx| {
        let set = SetAttr::owned(0o777, 1, 2);
        let made = fs.create(cx, fs.root(), n("a"), Create::New, &set);
        let attr = made.unwrap().0.attr;
        assert_eq!((attr.mode, attr.uid, attr.gid), (0o640, 7, 8));
        let same = SetAttr::owned(0o640, 7, 8);
        fs.setattr(cx, attr.node, &same).unwrap();
        let refused = fs.setattr(cx, attr.node, &SetAttr::mode(0o600));
        assert_eq!(refused.unwrap_err(), Kind::Unsupported);
    });
}

//! Layers that change what names lead to.

use crate::{Rig, memory, n};
use std::sync::Arc;
use volary_core::{Access, Change, Create, Cred, Fs, Kind, Mode, RenameFlags, SetAttr};
use volary_layers::{CaseFold, Count, DirCache, Symlinks};
use volary_testkit::Telling;

fn names(rig: &Rig) -> Vec<String> {
    let out = rig.list(rig.fs.root());
    out.iter()
        .map(|e| String::from_utf8_lossy(e.name).into_owned())
        .collect()
}

#[test]
fn twins_made_by_others_are_told_apart_by_their_spelling() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let (b, a) = (
        below.file(root, "NAME", b"1"),
        below.file(root, "Name", b"2"),
    );
    let rig = Rig::new(CaseFold::new(below.fs.clone()).unwrap());
    assert_eq!(rig.find(root, "NAME").unwrap(), b);
    assert_eq!(rig.find(root, "Name").unwrap(), a);
    assert_eq!(
        rig.find(root, "name").unwrap(),
        b,
        "the first in the order of bytes"
    );
    rig.fs.unlink(&rig.cx(), root, n("name")).unwrap();
    assert_eq!(rig.find(root, "nAME").unwrap(), a);
}

#[test]
fn a_rename_over_a_twin_takes_the_spelling_asked_for() {
    let rig = Rig::new(CaseFold::new(memory()).unwrap());
    let root = rig.fs.root();
    rig.file(root, "Old", b"1");
    let new = rig.file(root, "x", b"2");
    let flags = RenameFlags::REPLACE;
    rig.fs
        .rename(&rig.cx(), root, n("X"), root, n("oLD"), flags)
        .unwrap();
    assert_eq!(names(&rig), ["oLD"]);
    assert_eq!(rig.find(root, "old").unwrap(), new);
}

fn telling() -> (Rig, Fs, impl Fn(Change)) {
    let below = Rig::over(memory());
    let telling = Arc::new(Telling::new(below.fs.clone()));
    let fs: Fs = telling.clone();
    (below, fs, move |change| telling.tell(change))
}

#[test]
fn casefold_forgets_a_directory_on_news() {
    let (below, fs, tell) = telling();
    let rig = Rig::new(CaseFold::new(fs).unwrap());
    let root = rig.fs.root();
    assert!(rig.find(root, "name").is_err());
    let node = below.file(root, "NAME", b"");
    assert!(rig.find(root, "name").is_err(), "no news yet");
    tell(Change::Entries(root));
    assert_eq!(rig.find(root, "name").unwrap(), node);
}

#[test]
fn dircache_forgets_on_news_and_asks_once_otherwise() {
    let (below, fs, tell) = telling();
    let count = Arc::new(Count::new(fs));
    let rig = Rig::new(DirCache::parse(count.clone(), "").unwrap());
    let root = rig.fs.root();
    let node = below.file(root, "f", b"1");
    for _ in 0..5 {
        assert_eq!(rig.find(root, "f").unwrap(), node);
        assert!(rig.find(root, "none").is_err());
        assert_eq!(rig.fs.getattr(&rig.cx(), node).unwrap().size, 1);
    }
    assert_eq!(count.calls(volary_core::Call::Lookup), 2);
    assert_eq!(count.calls(volary_core::Call::GetAttr), 0);
    below
        .fs
        .setattr(&below.cx(), node, &SetAttr::size(9))
        .unwrap();
    tell(Change::Attr(node));
    assert_eq!(rig.fs.getattr(&rig.cx(), node).unwrap().size, 9);
    below.fs.unlink(&below.cx(), root, n("f")).unwrap();
    tell(Change::Entries(root));
    assert_eq!(rig.find(root, "f").unwrap_err(), Kind::NotFound);
}

#[test]
fn dircache_remembers_a_listing_and_keeps_to_its_bound() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    (0..50).for_each(|i| _ = below.file(root, &format!("f{i}"), b""));
    let count = Arc::new(Count::new(below.fs.clone()));
    let rig = Rig::new(DirCache::parse(count.clone(), "").unwrap());
    rig.list(root);
    (0..50).for_each(|i| _ = rig.find(root, &format!("f{i}")).unwrap());
    assert_eq!(count.calls(volary_core::Call::Lookup), 0);
    let small = Rig::new(DirCache::parse(below.fs.clone(), "memory=4k").unwrap());
    for _ in 0..3 {
        (0..50).for_each(|i| _ = small.find(root, &format!("f{i}")).unwrap());
    }
}

#[test]
fn dircache_counts_for_its_age() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let cache = DirCache::parse(below.fs.clone(), "age=10").unwrap();
    let rig = Rig::new(cache);
    assert!(rig.find(root, "f").is_err());
    let node = below.file(root, "f", b"");
    assert!(rig.find(root, "f").is_err());
    let mut cx = rig.cx();
    cx.now.secs += 10;
    assert_eq!(rig.fs.lookup(&cx, root, n("f")).unwrap().node, node);
}

fn link(rig: &Rig, name: &str, target: &str) {
    let root = rig.fs.root();
    let set = SetAttr::default();
    let target = target.as_bytes();
    rig.fs
        .symlink(&rig.cx(), root, n(name), target, &set)
        .unwrap();
}

fn linked() -> (Rig, Rig) {
    let below = Rig::over(memory());
    let rig = Rig::new(Symlinks::new(below.fs.clone()).unwrap());
    (below, rig)
}

#[test]
fn symlinks_show_what_they_lead_to_and_never_leave_the_volume() {
    let (below, rig) = linked();
    let root = rig.fs.root();
    let dir = below.dir(root, "dir");
    let file = below.file(dir, "file", b"content");
    for (name, target) in [
        ("rel", "dir/file"),
        ("abs", "/dir/file"),
        ("up", "../../../dir/../dir/file"),
        ("twice", "rel"),
        ("todir", "dir/"),
        ("here", "."),
        ("dangling", "none"),
        ("loop", "loop"),
        ("through", "todir/file"),
    ] {
        link(&below, name, target);
    }
    for name in ["rel", "abs", "up", "twice", "through"] {
        assert_eq!(rig.find(root, name).unwrap(), file, "{name}");
    }
    assert_eq!(rig.find(root, "todir").unwrap(), dir);
    assert_eq!(rig.find(root, "here").unwrap(), root);
    assert_eq!(rig.find(root, "dangling").unwrap_err(), Kind::NotFound);
    assert_eq!(rig.find(root, "loop").unwrap_err(), Kind::SymlinkLoop);
    let listed = names(&rig);
    assert_eq!(
        listed,
        [
            "dir", "rel", "abs", "up", "twice", "todir", "here", "through"
        ]
    );
    let out = rig.list(root);
    let kinds = out.iter().all(|e| e.kind != volary_core::FileKind::Symlink);
    assert!(kinds);
    assert_eq!(rig.read(rig.find(root, "up").unwrap()).unwrap(), b"content");
}

#[test]
fn forty_symlinks_are_followed_and_one_more_is_not() {
    let (below, rig) = linked();
    let root = rig.fs.root();
    let file = below.file(root, "l0", b"");
    (1..=41).for_each(|i| link(&below, &format!("l{i}"), &format!("l{}", i - 1)));
    assert_eq!(rig.find(root, "l40").unwrap(), file);
    assert_eq!(rig.find(root, "l41").unwrap_err(), Kind::SymlinkLoop);
    link(&below, "wide", "wide/../wide/../wide");
    assert_eq!(rig.find(root, "wide").unwrap_err(), Kind::SymlinkLoop);
}

#[test]
fn removing_and_replacing_touch_the_symlink_alone() {
    let (below, rig) = linked();
    let (root, cx) = (rig.fs.root(), rig.cx());
    let dir = below.dir(root, "dir");
    let file = below.file(dir, "file", b"x");
    link(&below, "tofile", "dir/file");
    link(&below, "todir", "dir");
    link(&below, "dangling", "none");
    assert_eq!(
        rig.fs.unlink(&cx, root, n("todir")).unwrap_err(),
        Kind::IsDir
    );
    rig.fs.rmdir(&cx, root, n("todir")).unwrap();
    assert_eq!(
        rig.fs.rmdir(&cx, root, n("tofile")).unwrap_err(),
        Kind::NotDir
    );
    let set = SetAttr::default();
    let new = rig.fs.create(&cx, root, n("dangling"), Create::New, &set);
    assert_eq!(new.unwrap_err(), Kind::Exists);
    let there = rig
        .fs
        .create(&cx, root, n("tofile"), Create::Truncate, &set);
    let (entry, open) = there.unwrap();
    assert_eq!((entry.node, entry.attr.size), (file, 0));
    rig.fs.close(&cx, open).unwrap();
    rig.fs.unlink(&cx, root, n("tofile")).unwrap();
    rig.fs.unlink(&cx, root, n("dangling")).unwrap();
    assert_eq!(names(&below), ["dir"]);
    assert_eq!(below.find(dir, "file").unwrap(), file);
}

#[test]
fn a_caller_who_may_not_search_a_directory_does_not_get_through_it_by_a_symlink() {
    let (below, rig) = linked();
    let root = rig.fs.root();
    let dir = below.dir(root, "secret");
    below.file(dir, "file", b"x");
    below
        .fs
        .setattr(&below.cx(), dir, &SetAttr::mode(0o700))
        .unwrap();
    link(&below, "way", "secret/file");
    let other = Rig {
        cred: Cred::new(5, 5),
        fs: rig.fs.clone(),
        now: volary_core::Time::from_secs(1000),
    };
    assert_eq!(other.find(root, "way").unwrap_err(), Kind::Access);
    assert!(rig.find(root, "way").is_ok());
    let attr = below.fs.getattr(&below.cx(), dir).unwrap();
    assert!(!attr.permits(&other.cred, Access::EXEC));
    rig.fs.open(&rig.cx(), dir, Mode::Read).unwrap();
}

//! The volume as a whole: caps, root, statfs and sync.

use crate::full;
use crate::rng::pattern;
use crate::suite::{Case, case_list};
use volary_core::{Caps, FileKind};

case_list! {
    about StatFs | Sync | Parent | GetAttr;
    caps_make_sense;
    caps_stay_the_same with WRITE;
    the_root_is_a_directory_and_holds_itself;
    the_root_stays_the_same with WRITE;
    statfs_adds_up;
    what_was_made_counts_as_used with WRITE;
    statfs_notices_what_is_written_and_removed with WRITE;
    sync_changes_nothing;
}

fn caps_make_sense(c: &Case) {
    let caps = c.caps();
    assert!(caps.name_max > 0, "names have a length");
    assert!(caps.size_max > 0, "files have a size");
    if caps.has(Caps::CASE_SENSITIVE) {
        assert!(
            caps.has(Caps::CASE_KEEPING),
            "who tells cases apart keeps them"
        );
    }
}

fn caps_stay_the_same(c: &Case) {
    c.dir(c.root(), "d");
    c.file(c.root(), "f", b"x");
    assert_eq!(c.fs().caps(), c.caps());
}

fn the_root_is_a_directory_and_holds_itself(c: &Case) {
    let root = c.root();
    let attr = c.attr(root);
    assert_eq!(attr.kind, FileKind::Dir);
    assert_eq!(attr.node, root);
    let parent = c.fs().parent(&c.cx(), root).expect("parent of the root");
    assert_eq!(parent.node, root);
    assert_eq!(parent.attr.node, root);
}

fn the_root_stays_the_same(c: &Case) {
    let root = c.root();
    for i in 0..50 {
        c.touch(root, format!("file{i}"));
    }
    assert_eq!(c.root(), root);
    assert_eq!(c.attr(root).node, root);
}

fn statfs_adds_up(c: &Case) {
    full::told(c);
}

fn what_was_made_counts_as_used(c: &Case) {
    const FILES: u64 = 30;
    const LEN: usize = 10_000;
    for i in 0..FILES {
        // What cannot be compressed.
        c.file(c.root(), format!("f{i}"), &pattern(i, LEN));
    }
    c.fs().sync(&c.cx()).expect("sync");
    full::covers(&full::told(c), FILES * LEN as u64, FILES + 1);
}

fn statfs_notices_what_is_written_and_removed(c: &Case) {
    let fs = c.fs();
    let free = |what| fs.statfs(&c.cx()).expect(what).free;
    // The new name may enlarge the directory, so it is made before the first measurement.
    c.touch(c.root(), "f");
    let before = free("statfs before");
    let node = c.find(c.root(), "f");
    let open = c.open(node);
    c.write(open, 0, &vec![7; 300_000]).expect("write");
    c.fs().fsync(&c.cx(), open, false).expect("fsync");
    c.close(open);
    let full = free("statfs with the file");
    assert!(
        before - full >= 300_000,
        "300,000 bytes took {}",
        before - full
    );
    c.resize(node, 0);
    c.fs().sync(&c.cx()).expect("sync");
    assert_eq!(free("statfs after"), before);
}

fn sync_changes_nothing(c: &Case) {
    if c.caps().has(Caps::WRITE) {
        c.file(c.root(), "f", b"content");
    }
    let before = c.tree();
    c.fs().sync(&c.cx()).expect("sync");
    c.fs().sync(&c.cx()).expect("sync again");
    before.assert_same(&c.tree());
}

//! create and mkdir.

use crate::suite::{Case, case_list};
use volary_core::{Caps, Create, FileKind, Kind, Mode};

case_list! {
    about Create | MkDir;
    a_new_file_is_empty_and_open with WRITE;
    a_new_file_has_the_time_of_the_call with WRITE;
    create_gives_the_attributes_that_getattr_gives with WRITE;
    create_new_over_what_is_there_is_refused with WRITE;
    create_open_keeps_what_is_there with WRITE;
    create_open_leaves_attributes_alone with WRITE | MODES;
    create_truncate_cuts_to_nothing with WRITE;
    create_truncate_is_seen_by_those_who_have_it_open with WRITE;
    create_over_a_directory_is_refused with WRITE;
    create_over_a_symlink_is_invalid with WRITE | SYMLINKS;
    create_over_a_fifo_is_invalid with WRITE | DEVICES;
    create_in_a_removed_directory_is_stale with WRITE;
    a_new_directory_is_empty with WRITE;
    a_new_directory_has_the_time_of_the_call with WRITE;
    mkdir_over_what_is_there_is_refused with WRITE;
    mkdir_in_a_removed_directory_is_stale with WRITE;
    a_name_can_be_used_again_at_once with WRITE;
    a_new_node_is_none_that_was_there_before with WRITE;
    many_files_in_many_directories with WRITE;
    what_was_made_is_there_after_reattaching with WRITE;
}

fn a_new_file_is_empty_and_open(c: &Case) {
    let (entry, open) = c.create(c.root(), "f", Create::New).expect("create");
    let a = entry.attr;
    assert_eq!((a.kind, a.size, a.nlink), (FileKind::File, 0, 1));
    assert_eq!(c.read(open, 0, 10).expect("read"), b"");
    assert_eq!(c.write(open, 0, b"abc").expect("write"), 3);
    assert_eq!(c.read(open, 0, 10).expect("read"), b"abc");
    c.close(open);
    assert_eq!(c.find(c.root(), "f"), entry.node);
}

fn a_new_file_has_the_time_of_the_call(c: &Case) {
    if !c.takes_our_time() {
        return c.skip("the volume's times come from a clock of its own");
    }
    c.pass(1000);
    let node = c.touch(c.root(), "f");
    let now = c.now().round_down(c.caps().time_step);
    c.pass(1000);
    assert_eq!(c.attr(node).mtime, now);
}

fn create_gives_the_attributes_that_getattr_gives(c: &Case) {
    let (entry, open) = c.create(c.root(), "f", Create::New).expect("create");
    let attr = c.attr(entry.node);
    assert_eq!(entry.attr.node, entry.node);
    assert_eq!(
        (entry.attr.mode, entry.attr.mtime, entry.attr.kind),
        (attr.mode, attr.mtime, attr.kind)
    );
    c.close(open);
}

fn create_new_over_what_is_there_is_refused(c: &Case) {
    c.file(c.root(), "f", b"content");
    c.dir(c.root(), "d");
    for name in ["f", "d"] {
        c.refuses(Kind::Exists, || c.create(c.root(), name, Create::New));
    }
    if c.caps().has(Caps::SYMLINKS) {
        c.symlink(c.root(), "s", b"nowhere").expect("symlink");
        c.refuses(Kind::Exists, || c.create(c.root(), "s", Create::New));
    }
}

fn create_open_keeps_what_is_there(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let (entry, open) = c.create(c.root(), "f", Create::Open).expect("create");
    assert_eq!((entry.node, entry.attr.size), (node, 7));
    assert_eq!(c.read(open, 0, 10).expect("read"), b"content");
    c.write(open, 0, b"C").expect("write");
    c.close(open);
    assert_eq!(c.content(node), b"Content");
    let (entry, open) = c.create(c.root(), "new", Create::Open).expect("create");
    c.close(open);
    assert_eq!(c.find(c.root(), "new"), entry.node);
}

fn create_open_leaves_attributes_alone(c: &Case) {
    let set = volary_core::SetAttr::owned(0o600, 5, 6);
    let (_, open) = c
        .create_as(c.root(), "f", Create::New, &set)
        .expect("create");
    c.close(open);
    for how in [Create::Open, Create::Truncate] {
        let (entry, open) = c.create(c.root(), "f", how).expect("create");
        c.close(open);
        let a = entry.attr;
        assert_eq!((a.mode, a.uid, a.gid), (0o600, 5, 6), "{how:?}");
    }
}

fn create_truncate_cuts_to_nothing(c: &Case) {
    let node = c.file(c.root(), "f", &[7; 10_000]);
    let (entry, open) = c.create(c.root(), "f", Create::Truncate).expect("create");
    assert_eq!((entry.node, entry.attr.size), (node, 0));
    c.write(open, 5, b"x").expect("write");
    c.close(open);
    assert_eq!(c.content(node), b"\0\0\0\0\0x");
    let (_, open) = c.create(c.root(), "new", Create::Truncate).expect("create");
    c.close(open);
    assert_eq!(c.attr(c.find(c.root(), "new")).size, 0);
}

fn create_truncate_is_seen_by_those_who_have_it_open(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let reader = c.open_to_read(node);
    let (_, open) = c.create(c.root(), "f", Create::Truncate).expect("create");
    assert_eq!(c.read(reader, 0, 10).expect("read"), b"");
    c.write(open, 0, b"new").expect("write");
    assert_eq!(c.read(reader, 0, 10).expect("read"), b"new");
    c.close(open);
    c.close(reader);
}

fn create_over_a_directory_is_refused(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.file(dir, "f", b"x");
    for how in [Create::Open, Create::Truncate] {
        c.refuses(Kind::IsDir, || c.create(c.root(), "d", how));
    }
}

fn create_over_a_symlink_is_invalid(c: &Case) {
    c.file(c.root(), "f", b"x");
    c.symlink(c.root(), "s", b"f").expect("symlink");
    for how in [Create::Open, Create::Truncate] {
        c.refuses(Kind::Invalid, || c.create(c.root(), "s", how));
    }
}

fn create_over_a_fifo_is_invalid(c: &Case) {
    c.mknod(c.root(), "p", FileKind::Fifo, 0).expect("mknod");
    for how in [Create::Open, Create::Truncate] {
        c.refuses(Kind::Invalid, || c.create(c.root(), "p", how));
    }
}

fn create_in_a_removed_directory_is_stale(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.rmdir(c.root(), "d").expect("rmdir");
    for how in [Create::New, Create::Open, Create::Truncate] {
        c.refuses(Kind::Stale, || c.create(dir, "f", how));
    }
}

fn a_new_directory_is_empty(c: &Case) {
    let entry = c.mkdir(c.root(), "d").expect("mkdir");
    assert_eq!(entry.attr.kind, FileKind::Dir);
    assert_eq!(entry.attr.node, entry.node);
    assert!(c.names(entry.node).is_empty());
    assert_eq!(c.find(c.root(), "d"), entry.node);
}

fn a_new_directory_has_the_time_of_the_call(c: &Case) {
    if !c.takes_our_time() {
        return c.skip("the volume's times come from a clock of its own");
    }
    c.pass(1000);
    let node = c.dir(c.root(), "d");
    let now = c.now().round_down(c.caps().time_step);
    c.pass(1000);
    assert_eq!(c.attr(node).mtime, now);
}

fn mkdir_over_what_is_there_is_refused(c: &Case) {
    c.file(c.root(), "f", b"content");
    c.file(c.dir(c.root(), "d"), "below", b"x");
    for name in ["f", "d"] {
        c.refuses(Kind::Exists, || c.mkdir(c.root(), name));
    }
}

fn mkdir_in_a_removed_directory_is_stale(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.rmdir(c.root(), "d").expect("rmdir");
    c.refuses(Kind::Stale, || c.mkdir(dir, "x"));
}

fn a_name_can_be_used_again_at_once(c: &Case) {
    let mut seen = Vec::new();
    for round in 0..20_u8 {
        let node = c.file(c.root(), "again, again", &[round; 100]);
        assert_eq!(c.content(node), [round; 100]);
        c.unlink(c.root(), "again, again").expect("unlink");
        let dir = c.dir(c.root(), "again, again");
        assert!(c.names(dir).is_empty());
        c.rmdir(c.root(), "again, again").expect("rmdir");
        seen.extend([node, dir]);
    }
    // The old ids stay stale, even if a new node takes the same place on disk.
    c.touch(c.root(), "again, again");
    for node in seen {
        assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
        assert_eq!(c.try_open(node, Mode::Read).unwrap_err(), Kind::Stale);
    }
}

fn a_new_node_is_none_that_was_there_before(c: &Case) {
    let mut seen = Vec::new();
    let mut new = |node| {
        assert!(!seen.contains(&node), "{node:?} was there before");
        seen.push(node);
    };
    // All within one instant, and each probably at the place of the one before.
    for round in 0..5 {
        new(c.dir(c.root(), format!("d{round}")));
        c.rmdir(c.root(), format!("d{round}")).expect("rmdir");
        c.fs().sync(&c.cx()).expect("sync");
        new(c.touch(c.root(), "a"));
        new(c.touch(c.root(), "b"));
        c.unlink(c.root(), "a").expect("unlink");
        c.rename(c.root(), "b", c.root(), "a").expect("rename");
        c.unlink(c.root(), "a").expect("unlink");
        new(c.touch(c.root(), "a"));
        c.unlink(c.root(), "a").expect("unlink");
    }
}

fn many_files_in_many_directories(c: &Case) {
    let content = |d: usize, f: usize| format!("{d}/{f}").repeat(f).into_bytes();
    for d in 0..10 {
        let dir = c.dir(c.root(), format!("directory {d}"));
        for f in 0..30 {
            c.file(dir, format!("file {f}"), &content(d, f));
        }
    }
    for d in 0..10 {
        let dir = c.find(c.root(), format!("directory {d}"));
        assert_eq!(c.names(dir).len(), 30);
        for f in 0..30 {
            let node = c.find(dir, format!("file {f}"));
            assert_eq!(c.content(node), content(d, f));
        }
    }
}

fn what_was_made_is_there_after_reattaching(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for i in 0..50 {
        c.file(dir, format!("file {i}"), &vec![i; 1000 * usize::from(i)]);
    }
    c.dir(dir, "below");
    let before = c.tree();
    if c.reattach() {
        before.assert_same(&c.tree());
    }
}

//! Leases and names: on directories, and H where names change.

use crate::Make;
use crate::leases::{ALL, NONE, R, RH, RHW, RW, held, key, obedient, open, setup, shared};
use volary_core::{Mode, NodeId, RenameFlags, SetAttr};
use volary_session::{OpenHow, Session};

type Does = fn(&Session, NodeId);

#[test]
fn a_directory_lease_is_broken_by_changes_of_its_entries() {
    let rows: [(&str, Does); 7] = [
        ("mkdir", |s, dir| {
            s.dir(dir, "new", 0o777);
        }),
        ("create", |s, dir| {
            s.file(dir, "new", 0o666);
        }),
        ("symlink", |s, dir| {
            s.symlink(dir, b"new", b"x", &SetAttr::default()).unwrap();
        }),
        ("unlink", |s, dir| s.unlink(dir, b"f").unwrap()),
        ("rename", |s, dir| {
            s.rename(dir, b"f", dir, b"g", RenameFlags::REPLACE)
                .unwrap();
        }),
        ("away", |s, dir| {
            s.rename(dir, b"f", s.root(), b"g", RenameFlags::REPLACE)
                .unwrap();
        }),
        ("here", |s, dir| {
            s.rename(s.root(), b"f", dir, b"g", RenameFlags::REPLACE)
                .unwrap();
        }),
    ];
    for (what, does) in rows {
        let (volume, s, _) = setup();
        let dir = s.dir(s.root(), "d", 0o777);
        s.file(dir, "f", 0o666);
        let sink = obedient(&volume);
        let how = OpenHow::from(Mode::Read).with_lease_key(key(1, 1));
        let open = s.open(dir, how).unwrap();
        s.lease(open, key(1, 1), RH, sink.clone()).unwrap();
        s.readdir(
            s.open(dir, Mode::Read).unwrap(),
            volary_core::Cookie::START,
            &mut dir_buf(),
        )
        .unwrap();
        let own = s.clone().with_parent_key(key(1, 1));
        own.dir(dir, "by the holder", 0o777);
        assert!(sink.take().is_empty(), "{what}");
        does(&s, dir);
        assert_eq!(sink.take(), [(RH, NONE)], "{what}");
    }
}

fn dir_buf() -> volary_core::DirBuf {
    volary_core::DirBuf::new(16, 4096, false)
}

#[test]
fn a_directory_lease_is_broken_by_changes_of_files_that_were_opened_there() {
    let (volume, s, node) = setup();
    let sink = obedient(&volume);
    let how = OpenHow::from(Mode::Read).with_lease_key(key(1, 1));
    let dir = s.open(s.root(), how).unwrap();
    s.lease(dir, key(1, 1), RH, sink.clone()).unwrap();
    let at = Some((s.root(), b"f".as_slice()));
    let mine = OpenHow {
        parent_key: Some(key(1, 1)),
        ..shared(ALL, ALL)
    };
    let mine = s.open_entry_of(node, at, mine).unwrap();
    s.write(mine, None, b"x").unwrap();
    assert!(sink.take().is_empty());
    let theirs = s.open_entry_of(node, at, shared(ALL, ALL)).unwrap();
    s.write(theirs, None, b"x").unwrap();
    assert_eq!(sink.take(), [(RH, NONE)]);
}

#[test]
fn an_open_directory_below_is_freed_before_a_rename() {
    let (volume, s, _) = setup();
    let dir = s.dir(s.root(), "d", 0o777);
    let node = s.file(dir, "f", 0o666);
    let sink = obedient(&volume);
    let at = Some((dir, b"f".as_slice()));
    let how = shared(ALL, ALL).with_lease_key(key(1, 1));
    let open = s.open_entry_of(node, at, how).unwrap();
    s.lease(open, key(1, 1), RHW, sink.clone()).unwrap();
    assert_eq!(s.free_below(dir), Ok(true));
    assert_eq!(sink.take(), [(RHW, RW)]);
    s.close(open).unwrap();
    assert_eq!(s.free_below(dir), Ok(false));
}

#[test]
fn letting_an_entry_go_breaks_others_handles() {
    let (volume, s, node) = setup();
    let sink = obedient(&volume);
    let one = open(&s, node, key(1, 1));
    let two = open(&s, node, key(2, 1));
    s.lease(one, key(1, 1), RH, sink.clone()).unwrap();
    s.lease(two, key(2, 1), RH, sink.clone()).unwrap();
    s.set_delete(two, true).unwrap();
    assert_eq!(sink.take(), [(RH, R)]);
    assert_eq!((held(&s, key(1, 1)), held(&s, key(2, 1))), (R, RH));
    s.set_delete(two, false).unwrap();
    s.lease(one, key(1, 1), RH, sink.clone()).unwrap();
    s.rename_open(two, s.root(), b"g", RenameFlags::REPLACE)
        .unwrap();
    assert_eq!(sink.take(), [(RH, R)]);
}

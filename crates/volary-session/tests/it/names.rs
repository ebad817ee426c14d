//! Names at the border, and the operations on them.

use crate::{Make, kind, root, volume};
use volary_core::{Create, FileKind, Kind, Mode, RenameFlags, SetAttr};

/// What each operation says to a name that is none.
#[test]
fn what_is_no_name_is_refused_as_posix_has_it() {
    let volume = volume();
    let s = root(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o755));
    let node = s.file(top, "f", 0o644);
    let long = vec![b'n'; 256];
    let replace = RenameFlags::REPLACE;
    let all = |name: &[u8]| {
        [
            kind(s.lookup(top, name)),
            kind(s.create(top, name, Create::Open, Mode::Write, &set)),
            kind(s.mkdir(top, name, &set)),
            kind(s.mknod(top, name, FileKind::Fifo, 0, &set)),
            kind(s.symlink(top, name, b"x", &set)),
            kind(s.link(node, top, name)),
            kind(s.unlink(top, name)),
            kind(s.rmdir(top, name)),
            kind(s.rename(top, name, top, b"g", replace)),
            kind(s.rename(top, b"f", top, name, replace)),
        ]
    };
    assert_eq!(all(b""), [Some(Kind::NotFound); 10]);
    assert_eq!(all(b"a/b"), [Some(Kind::Invalid); 10]);
    assert_eq!(all(b"a\0b"), [Some(Kind::Invalid); 10]);
    assert_eq!(all(&long), [Some(Kind::NameTooLong); 10]);
    let (exists, is_dir) = (Some(Kind::Exists), Some(Kind::IsDir));
    let invalid = Some(Kind::Invalid);
    let dot = [
        None, is_dir, exists, exists, exists, exists, is_dir, invalid, invalid, invalid,
    ];
    assert_eq!(all(b"."), dot);
    let mut dots = dot;
    dots[7] = Some(Kind::NotEmpty);
    assert_eq!(all(b".."), dots);
    s.file(top, &"n".repeat(255), 0o644);
}

#[test]
fn dots_lead_to_the_directory_itself_and_to_the_one_that_holds_it() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "d", 0o755);
    assert_eq!(s.find(dir, "."), Ok(dir));
    assert_eq!(s.find(dir, ".."), Ok(top));
    assert_eq!(s.find(top, ".."), Ok(top));
    let file = s.file(top, "f", 0o644);
    assert_eq!(kind(s.find(file, ".")), Some(Kind::NotDir));
    assert_eq!(kind(s.find(file, "..")), Some(Kind::NotDir));
    assert_eq!(kind(s.find(file, "x")), Some(Kind::NotDir));
}

#[test]
fn create_makes_opens_or_cuts_as_asked() {
    let volume = volume();
    let s = root(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o640));
    let make = |how, mode| s.create(top, b"f", how, mode, &set);
    let (entry, open) = make(Create::New, Mode::ReadWrite).unwrap();
    assert_eq!(entry.attr.mode, 0o640);
    s.write(open, None, b"text").unwrap();
    s.close(open).unwrap();

    assert_eq!(kind(make(Create::New, Mode::Read)), Some(Kind::Exists));
    let (again, open) = make(Create::Open, Mode::Read).unwrap();
    assert_eq!((again.node, again.attr.size), (entry.node, 4));
    assert_eq!(kind(s.write(open, None, b"x")), Some(Kind::Access));
    s.close(open).unwrap();

    let cut = make(Create::Truncate, Mode::Read);
    assert_eq!(kind(cut), Some(Kind::Invalid));
    let (cut, open) = make(Create::Truncate, Mode::Write).unwrap();
    assert_eq!((cut.node, cut.attr.size), (entry.node, 0));
    s.close(open).unwrap();
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn create_opens_nothing_but_files() {
    let volume = volume();
    let s = root(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o644));
    s.dir(top, "d", 0o755);
    s.symlink(top, b"l", b"d", &set).unwrap();
    s.mknod(top, b"p", FileKind::Fifo, 0, &set).unwrap();
    for (name, expected) in [
        (b"d", Kind::IsDir),
        (b"l", Kind::SymlinkLoop),
        (b"p", Kind::Invalid),
    ] {
        let opened = s.create(top, name, Create::Open, Mode::Read, &set);
        assert_eq!(kind(opened), Some(expected));
    }
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn a_new_file_may_be_written_though_its_mode_forbids_it() {
    let volume = volume();
    let s = crate::user(&volume, crate::OWNER);
    let set = SetAttr::mode(0o400);
    let made = s.create(s.root(), b"f", Create::New, Mode::Write, &set);
    let (entry, open) = made.unwrap();
    s.write(open, None, b"x").unwrap();
    assert_eq!(kind(s.open(entry.node, Mode::Write)), Some(Kind::Access));
}

#[test]
fn directories_get_no_second_name() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "d", 0o755);
    assert_eq!(kind(s.link(dir, top, b"e")), Some(Kind::NotPermitted));
    assert_eq!(kind(s.link(dir, top, b"d")), Some(Kind::Exists));
    let node = s.file(top, "f", 0o644);
    assert_eq!(s.link(node, dir, b"g").unwrap().attr.nlink, 2);
}

#[test]
fn a_symlinks_target_is_a_path() {
    let volume = volume();
    let s = root(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o777));
    let long = vec![b'x'; volary_session::PATH_MAX + 1];
    for (target, expected) in [
        (&b""[..], Kind::NotFound),
        (&long, Kind::NameTooLong),
        (b"a\0", Kind::Invalid),
    ] {
        assert_eq!(kind(s.symlink(top, b"l", target, &set)), Some(expected));
    }
    let made = s.symlink(top, b"l", &long[1..], &set).unwrap();
    assert_eq!(s.readlink(made.node).unwrap(), &long[1..]);
    assert_eq!(kind(s.readlink(top)), Some(Kind::Invalid));
}

#[test]
fn what_is_not_a_directory_holds_nothing() {
    let volume = volume();
    let s = root(&volume);
    let (top, set) = (s.root(), SetAttr::mode(0o755));
    let file = s.file(top, "f", 0o644);
    let replace = RenameFlags::REPLACE;
    let refused = [
        kind(s.create(file, b"x", Create::Open, Mode::Read, &set)),
        kind(s.mkdir(file, b"x", &set)),
        kind(s.symlink(file, b"x", b"y", &set)),
        kind(s.link(file, file, b"x")),
        kind(s.unlink(file, b"x")),
        kind(s.rmdir(file, b"x")),
        kind(s.rename(file, b"x", top, b"y", replace)),
        kind(s.rename(top, b"f", file, b"y", replace)),
    ];
    assert_eq!(refused, [Some(Kind::NotDir); 8]);
}

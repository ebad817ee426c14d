//! Opens: what they are for, and how long they last.

use crate::{Make, OTHER, OWNER, kind, root, user, volume};
use volary_core::{Cookie, DirBuf, Kind, Mode, OpenId, SetAttr};
use volary_session::OpenHow;

#[test]
fn an_open_does_what_it_was_opened_for() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let no = Some(Kind::Access);
    for (mode, reads, writes) in [
        (Mode::Read, None, no),
        (Mode::Write, no, None),
        (Mode::ReadWrite, None, None),
    ] {
        let open = s.open(node, mode).unwrap();
        assert_eq!(s.opened(open), Ok((node, mode)));
        assert_eq!(kind(s.read(open, 0, &mut [0; 4])), reads);
        assert_eq!(kind(s.write(open, Some(0), b"x")), writes);
        assert_eq!(kind(s.allocate(open, 0, 10, false)), writes);
        let extents = kind(s.extents(open, 0, 1, &mut Vec::new()));
        assert_eq!(extents, reads.or(Some(Kind::Unsupported)));
        s.fsync(open, false).unwrap();
        s.close(open).unwrap();
    }
}

#[test]
fn rights_are_looked_at_when_it_is_opened_and_not_after() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let node = owner.file(owner.root(), "f", 0o644);
    let open = owner.open(node, Mode::ReadWrite).unwrap();
    owner.setattr(node, &SetAttr::mode(0)).unwrap();
    owner.write(open, None, b"still").unwrap();
    let mut buf = [0; 10];
    // Who has the open may use it, in whatever session.
    assert_eq!(user(&volume, OTHER).read(open, 0, &mut buf), Ok(5));
    assert_eq!(kind(owner.open(node, Mode::Read)), Some(Kind::Access));
}

#[test]
fn appending_ignores_the_offset() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let how = OpenHow {
        append: true,
        ..Mode::ReadWrite.into()
    };
    let open = s.open(node, how).unwrap();
    assert_eq!(s.write(open, Some(100), b"ab"), Ok(2));
    assert_eq!(s.write(open, Some(0), b"cd"), Ok(4));
    let plain = s.open(node, Mode::Write).unwrap();
    assert_eq!(s.write(plain, None, b"ef"), Ok(6));
    assert_eq!(s.write(plain, Some(0), b"A"), Ok(1));
    let mut buf = [0; 10];
    assert_eq!(s.read(open, 0, &mut buf), Ok(6));
    assert_eq!(&buf[..6], b"Abcdef");
}

#[test]
fn truncating_at_open_needs_writing() {
    let volume = volume();
    let s = root(&volume);
    let (node, open) = s.open_file(s.root(), "f");
    s.write(open, None, b"text").unwrap();
    let how = |mode: Mode| OpenHow {
        truncate: true,
        ..mode.into()
    };
    assert_eq!(kind(s.open(node, how(Mode::Read))), Some(Kind::Invalid));
    assert_eq!(s.getattr(node).unwrap().size, 4);
    s.open(node, how(Mode::Write)).unwrap();
    assert_eq!(s.getattr(node).unwrap().size, 0);
}

#[test]
fn directories_are_opened_for_reading_only() {
    let volume = volume();
    let s = root(&volume);
    let dir = s.dir(s.root(), "d", 0o755);
    for name in ["a", "b", "c"] {
        s.file(dir, name, 0o644);
    }
    assert_eq!(kind(s.open(dir, Mode::ReadWrite)), Some(Kind::IsDir));
    let open = s.open(dir, Mode::Read).unwrap();
    let (mut names, mut from) = (Vec::new(), Cookie::START);
    let mut out = DirBuf::new(2, 100, true);
    loop {
        out.clear();
        let end = s.readdir(open, from, &mut out).unwrap();
        names.extend(out.iter().map(|e| e.name.to_vec()));
        from = out.last_cookie().unwrap_or(from);
        if end {
            break;
        }
    }
    assert_eq!(names, [b"a", b"b", b"c"]);
    assert_eq!(kind(s.read(open, 0, &mut [0; 4])), Some(Kind::IsDir));
    let (_, file) = s.open_file(dir, "a");
    let listed = s.readdir(file, Cookie::START, &mut out);
    assert_eq!(kind(listed), Some(Kind::NotDir));
}

#[test]
fn an_open_that_is_gone_is_stale_even_when_its_place_is_used_again() {
    let volume = volume();
    let s = root(&volume);
    let (node, first) = s.open_file(s.root(), "f");
    s.close(first).unwrap();
    let opens: Vec<_> = (0..100)
        .map(|_| s.open(node, Mode::Read).unwrap())
        .collect();
    assert_eq!(volume.open_count(), 100);
    assert!(!opens.contains(&first));
    for open in [
        first,
        OpenId(0),
        OpenId(u64::MAX),
        OpenId(first.0 ^ 1 << 32),
    ] {
        assert_eq!(kind(s.read(open, 0, &mut [0; 4])), Some(Kind::Stale));
        assert_eq!(kind(s.write(open, None, b"x")), Some(Kind::Stale));
        assert_eq!(kind(s.fsync(open, true)), Some(Kind::Stale));
        assert_eq!(kind(s.ioctl(open, 0, b"")), Some(Kind::Stale));
        assert_eq!(kind(s.getattr_open(open)), Some(Kind::Stale));
        assert_eq!(kind(s.close(open)), Some(Kind::Stale));
    }
    opens.into_iter().for_each(|open| s.close(open).unwrap());
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn a_removed_file_lives_until_its_last_open_ends() {
    let volume = volume();
    let s = root(&volume);
    let (node, open) = s.open_file(s.root(), "f");
    s.unlink(s.root(), b"f").unwrap();
    s.write(open, None, b"text").unwrap();
    let attr = s.getattr_open(open).unwrap();
    assert_eq!((attr.nlink, attr.size), (0, 4));
    s.close(open).unwrap();
    assert_eq!(kind(s.getattr(node)), Some(Kind::Stale));
}

#[test]
fn many_threads_open_and_close_at_once() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let s = s.clone();
            scope.spawn(move || {
                for _ in 0..500 {
                    let opens = [(); 3].map(|()| s.open(node, Mode::Read).unwrap());
                    for open in opens {
                        assert_eq!(s.opened(open), Ok((node, Mode::Read)));
                        s.close(open).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(volume.open_count(), 0);
}

#[test]
fn two_that_append_at_once_do_not_overwrite_each_other() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    std::thread::scope(|scope| {
        for mark in [b"aaaa", b"bbbb"] {
            let s = s.clone();
            scope.spawn(move || {
                let open = s.open(node, Mode::Write).unwrap();
                for _ in 0..200 {
                    s.write(open, None, mark).unwrap();
                }
                s.close(open).unwrap();
            });
        }
    });
    let open = s.open(node, Mode::Read).unwrap();
    let mut all = vec![0; 2000];
    assert_eq!(s.read(open, 0, &mut all), Ok(1600));
    for four in all[..1600].chunks(4) {
        assert!(four == b"aaaa" || four == b"bbbb", "{four:?}");
    }
}

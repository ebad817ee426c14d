//! Whole files, many at the same time: each as `open`, `read`, `getattr` and `close` have it.

use rustix::fs::inotify;
use std::path::Path;
use volary_core::{Attr, Cookie, DirBuf, Fs, Mode, Whole};
use volary_host::HostOptions;
use volary_testkit::volumes::as_root;

/// A directory that is attached with rings, by handle and not, where the host has rings.
fn with_rings(dir: &Path, test: impl Fn(&Fs, bool)) {
    for by_handle in [true, false] {
        let options = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        let fs = volary_host::attach(dir, &options).expect("attach");
        if as_root(|cx| fs.read_whole(cx, &mut [])) {
            test(&fs, by_handle);
        }
    }
}

/// Returns all entries of the root, as they are listed with their attributes.
fn listed(fs: &Fs) -> Vec<(String, Attr)> {
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).expect("open");
        let mut buf = DirBuf::new(1000, 64 << 10, true);
        assert!(fs.readdir(cx, open, Cookie::START, &mut buf).expect("list"));
        fs.close(cx, open).expect("close");
        let entry = |e: volary_core::DirEntry<'_>| {
            let name = String::from_utf8(e.name.to_vec()).expect("a name");
            (name, e.attr.expect("attributes"))
        };
        buf.iter().map(entry).collect()
    })
}

fn room<'a>(listed: &'a [(String, Attr)]) -> Vec<Whole<'a>> {
    let room = |(_, attr): &'a (String, Attr)| Whole {
        attr,
        bytes: vec![0xaa; attr.size as usize + 1],
        read: None,
    };
    listed.iter().map(room).collect()
}

fn make(dir: &Path, count: usize) {
    for number in 0..count {
        let bytes = vec![number as u8; number * 97 % 10_000];
        std::fs::write(dir.join(number.to_string()), bytes).expect("write");
    }
}

#[test]
fn files_are_read_with_their_attributes() {
    let dir = tempfile::tempdir().expect("a directory");
    make(dir.path(), 100);
    with_rings(dir.path(), |fs, by_handle| {
        let listed = listed(fs);
        let mut files = room(&listed);
        assert!(as_root(|cx| fs.read_whole(cx, &mut files)));
        for (file, (name, attr)) in files.iter().zip(&listed) {
            let (len, now) = file.read.expect("it can be read");
            let bytes = std::fs::read(dir.path().join(name)).expect("read");
            assert_eq!(file.bytes[..len], bytes, "{name}, by handle: {by_handle}");
            assert_eq!(
                (now.node, now.size, now.ctime),
                (attr.node, attr.size, attr.ctime)
            );
        }
    });
}

#[test]
fn nothing_is_read_together_where_that_is_not_wanted() {
    let dir = tempfile::tempdir().expect("a directory");
    make(dir.path(), 3);
    let options = HostOptions {
        rings: false,
        ..HostOptions::default()
    };
    let fs = volary_host::attach(dir.path(), &options).expect("attach");
    let listed = listed(&fs);
    let mut files = room(&listed);
    assert!(!as_root(|cx| fs.read_whole(cx, &mut files)));
    for file in files {
        assert!(file.read.is_none() && file.bytes.len() as u64 == file.attr.size + 1);
    }
}

#[test]
fn what_takes_the_name_of_a_file_is_neither_followed_nor_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    with_rings(dir.path(), |fs, by_handle| {
        let at = |name: &str| dir.path().join(name);
        for name in ["0", "1", "2"] {
            // What was put there in the turn before.
            let _ = std::fs::remove_file(at(name));
        }
        make(dir.path(), 40);
        let listed = listed(fs);
        for name in ["0", "1", "2"] {
            std::fs::remove_file(at(name)).expect("remove");
        }
        std::os::unix::fs::symlink(at("39"), at("0")).expect("symlink");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, at("1"), mode).expect("mkfifo");
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        for name in ["1", "39"] {
            inotify::add_watch(&watch, at(name), inotify::WatchFlags::OPEN).expect("watch");
        }
        let mut files: Vec<_> = room(&listed);
        // The one that the symlink leads to is not asked for.
        files.retain(|file| file.attr.size != 39 * 97);
        assert!(as_root(|cx| fs.read_whole(cx, &mut files)));
        let names = listed.iter().filter(|(name, _)| name != "39");
        for (file, (name, _)) in files.iter().zip(names) {
            let is_gone = ["0", "1", "2"].contains(&&**name);
            assert_eq!(
                file.read.is_none(),
                is_gone,
                "{name}, by handle: {by_handle}"
            );
        }
        let opened = rustix::io::read(&watch, &mut [0; 256]);
        assert_eq!(
            opened,
            Err(rustix::io::Errno::AGAIN),
            "by handle: {by_handle}"
        );
    });
}

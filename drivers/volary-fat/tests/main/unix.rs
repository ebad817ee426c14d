//! The UNIX extension: what is refused without it, and what Linux leaves of it.

use std::path::Path;
use std::sync::Arc;
use volary_block::{FileDevice, MemDevice, OpenOptions};
use volary_core::{
    Attach, Attr, BlockDevice, Create, FileKind, Format, Fs, Kind, Make, Name, Options,
    RenameFlags, SetAttr, SetTime, Time,
};
use volary_fat::FAT;
use volary_testkit::oracle::vm;
use volary_testkit::volumes::as_root;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn attach(dev: &Arc<dyn BlockDevice>, options: &str) -> Fs {
    let how = Attach {
        uid: 1000,
        gid: 1000,
        options: Options::parse(options),
        ..Attach::default()
    };
    FAT.attach(dev.clone(), &how).unwrap()
}

fn made(dev: Arc<dyn BlockDevice>, kind: &str, options: &str) -> Arc<dyn BlockDevice> {
    let how = Make {
        options: Options::parse(options),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &how).unwrap();
    dev
}

fn file(fs: &Fs, at: &str, set: &SetAttr, content: &[u8]) {
    as_root(|cx| {
        let (_, open) = fs
            .create(cx, fs.root(), name(at), Create::New, set)
            .unwrap();
        fs.write(cx, open, Some(0), content).unwrap();
        fs.close(cx, open).unwrap();
    });
}

fn attr(fs: &Fs, at: &str) -> Attr {
    as_root(|cx| fs.lookup(cx, fs.root(), name(at)).unwrap().attr)
}

fn who(a: &Attr) -> (FileKind, u32, u32, u32) {
    (a.kind, a.mode, a.uid, a.gid)
}

#[test]
fn what_the_format_cannot_do_is_answered_as_semantics_says() {
    let dev = made(Arc::new(MemDevice::new(4 << 20)), "fat12", "");
    let fs = attach(&dev, "");
    let root = fs.root();
    as_root(|cx| {
        let (entry, open) = fs
            .create(cx, root, name("f"), Create::New, &SetAttr::default())
            .unwrap();
        let node = entry.node;
        let set = |set: SetAttr| fs.setattr(cx, node, &set).map(|a| a.mode);
        assert_eq!(
            fs.link(cx, node, root, name("l")).unwrap_err(),
            Kind::Unsupported
        );
        assert_eq!(
            fs.getxattr(cx, node, b"user.a").unwrap_err(),
            Kind::Unsupported
        );
        assert_eq!(
            fs.rename(cx, root, name("f"), root, name("g"), RenameFlags::SWAP)
                .unwrap_err(),
            Kind::Unsupported
        );
        assert_eq!(
            fs.allocate(cx, open, 0, 1, false).unwrap_err(),
            Kind::Unsupported
        );
        assert_eq!(
            fs.write(cx, open, Some(u32::MAX.into()), b"x").unwrap_err(),
            Kind::TooBig
        );
        assert_eq!(
            fs.symlink(cx, root, name("s"), b"f", &SetAttr::default())
                .unwrap_err(),
            Kind::Unsupported
        );
        let fifo = fs.mknod(cx, root, name("p"), FileKind::Fifo, 0, &SetAttr::default());
        assert_eq!(fifo.unwrap_err(), Kind::Unsupported);
        assert_eq!(set(SetAttr::mode(0o700)).unwrap_err(), Kind::NotPermitted);
        assert_eq!(
            set(SetAttr {
                uid: Some(5),
                ..SetAttr::default()
            })
            .unwrap_err(),
            Kind::NotPermitted
        );
        assert_eq!(set(SetAttr::mode(0o755)), Ok(0o755));
        assert_eq!(set(SetAttr::mode(0o555)), Ok(0o555));
        fs.close(cx, open).unwrap();
    });
}

#[test]
fn names_and_times_are_kept_as_far_as_semantics_says() {
    let dev = made(Arc::new(MemDevice::new(4 << 20)), "fat12", "");
    let fs = attach(&dev, "");
    let root = fs.root();
    file(&fs, "f", &SetAttr::default(), b"");
    as_root(|cx| {
        let node = fs.lookup(cx, root, name("F")).unwrap().node;
        for bad in ["a:b", "a.", "a ", "a\u{1}", "a|b"] {
            let made = fs.mkdir(cx, root, name(bad), &SetAttr::default());
            assert_eq!(made.unwrap_err(), Kind::Invalid, "{bad}");
        }
        let long = "x".repeat(256);
        assert_eq!(
            fs.mkdir(cx, root, name(&long), &SetAttr::default())
                .unwrap_err(),
            Kind::NameTooLong
        );
        let early = SetAttr {
            mtime: Some(SetTime::To(Time::EPOCH)),
            ..SetAttr::default()
        };
        assert_eq!(
            fs.setattr(cx, node, &early).unwrap().mtime,
            Time::from_secs(315_532_800)
        );
    });
}

#[test]
fn quiet_lets_what_cannot_be_kept_pass() {
    let dev = made(Arc::new(MemDevice::new(4 << 20)), "fat16", "cluster=512");
    let fs = attach(&dev, "quiet");
    file(&fs, "f", &SetAttr::default(), b"");
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name("f")).unwrap().node;
        let a = fs.setattr(cx, node, &SetAttr::owned(0o4700, 5, 6)).unwrap();
        assert_eq!(who(&a), (FileKind::File, 0o755, 1000, 1000));
    });
}

#[test]
fn the_extension_comes_back_in_both_layouts() {
    for (make, mount) in [("unix", ""), ("", "unix=on"), ("", "unix=dosfs")] {
        let dev = made(Arc::new(MemDevice::new(4 << 20)), "fat12", make);
        let fs = attach(&dev, mount);
        file(&fs, "f", &SetAttr::owned(0o4751, 70, 80), b"x");
        as_root(|cx| {
            fs.symlink(cx, fs.root(), name("s"), b"f", &SetAttr::owned(0o777, 1, 2))
                .unwrap();
            let set = SetAttr::owned(0o600, 0, 0);
            fs.mknod(
                cx,
                fs.root(),
                name("d"),
                FileKind::BlockDevice,
                8 << 32 | 1,
                &set,
            )
            .unwrap();
            fs.detach(cx).unwrap();
        });
        let fs = attach(&dev, mount.trim_end_matches("unix=on"));
        assert_eq!(
            who(&attr(&fs, "f")),
            (FileKind::File, 0o4751, 70, 80),
            "{mount}"
        );
        assert_eq!(
            who(&attr(&fs, "s")),
            (FileKind::Symlink, 0o777, 1, 2),
            "{mount}"
        );
        assert_eq!(
            (attr(&fs, "d").kind, attr(&fs, "d").rdev),
            (FileKind::BlockDevice, 8 << 32 | 1)
        );
    }
}

#[test]
fn a_mount_without_the_extension_sees_files() {
    let dev = made(Arc::new(MemDevice::new(4 << 20)), "fat12", "unix");
    let fs = attach(&dev, "");
    as_root(|cx| {
        fs.symlink(
            cx,
            fs.root(),
            name("s"),
            b"target",
            &SetAttr::owned(0o777, 1, 2),
        )
        .unwrap();
        fs.detach(cx).unwrap();
    });
    let fs = attach(&dev, "unix=off");
    let a = attr(&fs, "s");
    assert_eq!((who(&a), a.size), ((FileKind::File, 0o755, 1000, 1000), 6));
}

/// What Linux does to the files of each image.
const CHANGES: &str = "for d in /dev/vd?; do mount -t vfat $d /mnt && cd /mnt && echo more >> a && mv b moved && \
    chmod a-w c && touch -d '2001-01-01 00:00' d && mv dir moved-dir && cd / && umount /mnt && echo good; done";

fn with_unix_files(path: &Path, kind: &str, size: u64) {
    std::fs::File::create(path).unwrap().set_len(size).unwrap();
    let dev = made(open(path), kind, "unix");
    let fs = attach(&dev, "");
    for (i, at) in (0..).zip(["a", "b", "c", "d"]) {
        file(&fs, at, &SetAttr::owned(0o640 + i, 70 + i, 80), b"some\n");
    }
    as_root(|cx| {
        let set = SetAttr::owned(0o1777, 90, 91);
        fs.mkdir(cx, fs.root(), name("dir"), &set).unwrap();
        fs.detach(cx).unwrap();
    });
}

fn open(path: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(path, OpenOptions::default()).unwrap())
}

#[test]
fn linux_keeps_the_extension() {
    let Some(vmrun) = vm::find() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let kinds = [("fat12", 4 << 20), ("fat16", 32 << 20), ("fat32", 64 << 20)];
    let paths = kinds.map(|(kind, size)| {
        let path = dir.path().join(kind);
        with_unix_files(&path, kind, size);
        path
    });
    let disks: Vec<_> = paths
        .iter()
        .map(|p| (p.as_path(), vm::Disk::Write))
        .collect();
    let printed = vm::script(&vmrun, &disks, None, CHANGES).unwrap();
    assert_eq!(printed.matches("good").count(), 3, "{printed}");
    for path in &paths {
        let fs = attach(&open(path), "");
        for (i, at) in (0..).zip(["a", "moved", "c", "d"]) {
            let expected = (FileKind::File, 0o640 + i, 70 + i, 80);
            assert_eq!(who(&attr(&fs, at)), expected, "{path:?} {at}");
        }
        assert_eq!(attr(&fs, "a").size, 10);
        assert_eq!(
            who(&attr(&fs, "moved-dir")),
            (FileKind::Dir, 0o1777, 90, 91),
            "{path:?}"
        );
    }
}

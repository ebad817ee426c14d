//! Every feature on and off: what went in comes out, and Linux reads the same.

use crate::images::{E2FSCK, Images, Mounted, can_make, can_mount, debugfs, run};
use crate::{attach_as, file, tools};
use rustix::fs::{XattrFlags, setxattr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};
use volary_testkit::rng::pattern;
use volary_testkit::view::{assert_same, host, kept_by_a_copy, ours};

/// Options of mke2fs, each for a volume.
const KINDS: &[&str] = &[
    "-t ext4",
    "-t ext2 -b 1024",
    "-t ext2 -b 4096 -O ^filetype",
    "-t ext2 -r 0 -b 1024",
    "-t ext3 -b 2048",
    "-t ext4 -b 1024",
    "-t ext4 -b 2048 -I 512",
    "-t ext4 -b 1024 -O inline_data,metadata_csum_seed",
    "-t ext4 -I 1024 -O inline_data",
    "-t ext4 -O ^extents,^64bit -b 1024",
    "-t ext4 -O ^64bit,^metadata_csum,uninit_bg",
    "-t ext4 -O ^metadata_csum,^uninit_bg,64bit -b 1024",
    "-t ext4 -O meta_bg,^resize_inode -b 1024 -g 1024",
    "-t ext4 -O meta_bg,^resize_inode,^64bit,^flex_bg -b 1024 -g 512",
    "-t ext4 -O bigalloc -C 16384",
    "-t ext4 -O bigalloc -b 1024 -C 4096",
    "-t ext4 -O casefold,encrypt",
    "-t ext4 -O verity,project,quota",
    "-t ext4 -O ea_inode,large_dir",
    "-t ext4 -O ^has_journal,sparse_super2,^resize_inode",
    "-t ext4 -O ^flex_bg,^sparse_super,^resize_inode,^huge_file,^dir_nlink,^extra_isize",
    "-t ext4 -O fast_commit,mmp,orphan_file",
    "-t ext4 -I 128 -O ^metadata_csum",
];

/// What went in, and what Linux reads.
fn compare(images: &Images, image: &Path, source: Option<&Path>, how: &str) {
    let dev = file(image);
    let fs = attach_as(dev.clone(), "").unwrap_or_else(|e| panic!("{how}: {e}"));
    let seen = ours(&fs, &dev);
    if let Some(source) = source {
        let (seen, there) = (kept_by_a_copy(&seen), kept_by_a_copy(&host(source)));
        assert_same(how, &seen, &there);
    }
    if can_mount() {
        // Linux is built without some features.
        match Mounted::try_new(images, image, "ro,noload") {
            Some(mounted) => assert_same(how, &seen, &host(mounted.dir())),
            None => println!("SKIPPED: this kernel does not mount {how}"),
        }
    }
    assert_eq!(tools::damage(&dev), [""; 0], "{how}");
    tools::check_map(&dev);
}

#[test]
fn what_mke2fs_put_in_comes_out_whatever_the_features() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.tree();
    for (number, how) in KINDS.iter().enumerate() {
        let image = images.made("made.img", how, "24M", Some(&source));
        compare(&images, &image, Some(&source), how);
        // Directories with hash trees, in some.
        if number % 4 != 1 {
            continue;
        }
        let status = E2FSCK.command().args(["-fyD"]).arg(&image).output();
        assert!(status.is_ok_and(|done| done.status.code().is_some_and(|code| code < 2)));
        compare(&images, &image, Some(&source), &format!("{how}, e2fsck -D"));
    }
}

/// user::rw-, user:1001:r--, group::r--, mask::r--, other::---, by Linux.
const ACL: &[u8] = &[
    2, 0, 0, 0, //
    1, 0, 6, 0, 255, 255, 255, 255, //
    2, 0, 4, 0, 0xe9, 3, 0, 0, //
    4, 0, 4, 0, 255, 255, 255, 255, //
    16, 0, 4, 0, 255, 255, 255, 255, //
    32, 0, 0, 0, 255, 255, 255, 255,
];

/// What mke2fs does not make: attributes, devices, times and room that Linux keeps.
fn fill_more(dir: &Path) {
    crate::images::fill(dir);
    let sh = |line: &str| run(Command::new("sh").args(["-ec", line]).current_dir(dir));
    sh(
        "mknod null c 1 3; mknod disk b 259 70000; mkfifo fifo; chown 70000:80000 size60; chmod 1777 few",
    );
    for (file, name, value) in [
        ("size100", "user.small", &b"value"[..]),
        ("size100", "trusted.t", b"tt"),
        ("size100", "user.empty", b""),
        ("size100", "security.s", b"\0\xff"),
        ("few", "user.dir", b"dir"),
        ("size4096", "user.long", &[b'x'; 700]),
        ("size200", "system.posix_acl_access", ACL),
        ("few", "system.posix_acl_access", ACL),
        ("few", "system.posix_acl_default", ACL),
    ] {
        setxattr(dir.join(file), name, value, XattrFlags::empty())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    sh(
        "fallocate -l 400000 room || true; printf x | dd of=room bs=1 seek=200000 conv=notrunc status=none",
    );
    sh("fallocate -n -l 100000 size4095 || true; truncate -s +90000 sparse");
    sh(
        "mkdir tree; for n in $(seq 1 1500); do ln size1 tree/a_longer_name_of_number_$n; done; rm tree/*7",
    );
    sh(
        "for n in $(seq 0 2 60); do dd if=/dev/zero of=broken bs=4096 seek=$n count=1 conv=notrunc status=none; sync broken; done",
    );
    sh(
        "truncate -s 3000000000000 huge && printf end | dd of=huge bs=1 seek=2345678 conv=notrunc status=none; truncate -s 3000000 huge",
    );
    for (name, then) in [
        ("size0", UNIX_EPOCH - Duration::new(1_000_000_000, 5)),
        (
            "size59",
            UNIX_EPOCH + Duration::new(10_000_000_000, 123_456_789),
        ),
    ] {
        let file = std::fs::File::options().write(true).open(dir.join(name));
        let _ = file.expect("a file").set_modified(then);
    }
}

/// What Linux writes on volumes of these kinds is read as it reads it.
#[test]
fn what_linux_writes_is_read_as_linux_reads_it() {
    if !can_make() || !can_mount() {
        return;
    }
    let images = Images::new();
    for how in [
        "-t ext4",
        "-t ext4 -b 1024 -O inline_data",
        "-t ext4 -O ^extents,^64bit,^metadata_csum -b 1024",
        "-t ext4 -O bigalloc,ea_inode -C 16384",
        "-t ext2 -b 1024",
        "-t ext3 -I 256",
    ] {
        let image = images.made("filled.img", how, "48M", None);
        {
            let mounted = Mounted::new(&images, &image, "rw");
            fill_more(mounted.dir());
        }
        compare(&images, &image, None, how);
        std::fs::remove_file(image).expect("an image");
    }
}

/// Values that need an inode of their own.
#[test]
fn long_attributes_are_read_from_their_inodes() {
    if !can_make() || !can_mount() {
        return;
    }
    let images = Images::new();
    let image = images.made("values.img", "-t ext4 -O ea_inode -b 1024", "16M", None);
    {
        let mounted = Mounted::new(&images, &image, "rw");
        for file in ["f", "g"].map(|name| mounted.dir().join(name)) {
            std::fs::write(&file, "x").expect("a file");
            for (name, len) in [
                ("user.one", 30_000),
                ("user.two", 60_001),
                ("user.three", 900),
            ] {
                let value = pattern(len as u64, len);
                setxattr(&file, name, &value, XattrFlags::empty()).expect("an attribute");
            }
        }
    }
    compare(&images, &image, None, "ea_inode");
}

/// Names are told apart by case, as they are stored, and what is encrypted says so.
#[test]
fn casefold_and_encryption_are_told() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.tree();
    let image = images.made(
        "flags.img",
        "-t ext4 -O casefold,encrypt",
        "16M",
        Some(&source),
    );
    // The flags of encrypted nodes: 0x800; extents 0x80000.
    debugfs(&image, "sif few flags 0x80800\nsif size1 flags 0x80800\n");
    let dev = file(&image);
    let fs = attach_as(dev.clone(), "").expect("attach");
    volary_testkit::volumes::as_root(|cx| {
        use volary_core::{Cookie, DirBuf, Kind, Mode, Name};
        let find = |name: &str| fs.lookup(cx, fs.root(), Name::new(name.as_bytes()).unwrap());
        let (dir, one) = (find("few").unwrap().node, find("size1").unwrap().node);
        assert_eq!(fs.open(cx, one, Mode::Read).unwrap_err(), Kind::Unsupported);
        assert_eq!(fs.open(cx, dir, Mode::Read).unwrap_err(), Kind::Unsupported);
        let told = fs.lookup(cx, dir, Name::new(b"a").unwrap()).unwrap_err();
        assert_eq!(told, Kind::Unsupported);
        assert!(told.to_string().contains("encrypted"), "{told}");
        assert_eq!(find("SIZE1").unwrap_err(), Kind::NotFound);
        let root = fs.open(cx, fs.root(), Mode::Read).unwrap();
        let mut out = DirBuf::new(1000, 1 << 16, true);
        assert!(fs.readdir(cx, root, Cookie::START, &mut out).unwrap());
        assert!(out.iter().any(|entry| entry.name == b"few"));
    });
    let facts = volary_core::Format::info(&volary_ext4::EXT4, dev.clone()).expect("info");
    let told = |key: &str| {
        facts
            .iter()
            .find(|fact| fact.key == key)
            .unwrap()
            .value
            .clone()
    };
    assert_eq!(
        (told("encryption"), told("casefold")),
        ("yes".into(), "yes".into())
    );
    assert!(tools::dump(&dev, "inode").contains("i_flags"));
    let found = tools::check(&dev);
    assert!(
        found.iter().any(|line| line.starts_with("encrypted: ")),
        "{found:?}"
    );
}

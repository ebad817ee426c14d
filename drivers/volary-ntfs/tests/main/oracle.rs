//! What ntfs-3g writes is read as it reads it.

use crate::images::{Images, attribute, can_mount, fill, mounted, run};

use crate::{attach_as, file, tools};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use volary_core::FileKind;
use volary_testkit::oracle::ntfs::Mounted;
use volary_testkit::rng::pattern;
use volary_testkit::view::{View, assert_same, host, ours};

const MIB: u64 = 1 << 20;

/// Returns what both tell: ntfs-3g has no sizes of directories, and no modes of special files.
pub(crate) fn told(view: &View) -> View {
    let mut view = view.clone();
    for row in view.values_mut() {
        if row.kind != FileKind::File {
            (row.size, row.sectors) = (0, 0);
        }
        if !matches!(row.kind, FileKind::File | FileKind::Dir) {
            row.mode = 0;
        }
    }
    view
}

/// Compares with what ntfs-3g reads, and checks.
fn compare(images: &Images, image: &Path, how: &str) {
    let dev = file(image);
    let fs = attach_as(dev.clone(), "").unwrap_or_else(|e| panic!("{how}: {e}"));
    let seen = ours(&fs, &dev);
    assert_eq!(tools::check(&dev), [""; 0], "{how}");
    tools::check_map(&dev);
    let mount = mounted(images, image, "ro");
    assert_same(how, &told(&seen), &told(&host(mount.dir())));
}

#[test]
fn what_ntfs_3g_writes_is_read_as_it_reads_it() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    for (how, size) in [
        ("", 12 * MIB),
        ("-c 512", 12 * MIB),
        ("-c 1024 -s 1024", 12 * MIB),
        ("-s 4096 -c 4096", 24 * MIB),
        ("-c 65536", 40 * MIB),
        ("-c 2097152", 4096 * MIB),
    ] {
        let image = images.filled(how, size, fill);
        compare(&images, &image, how);
    }
}

#[test]
fn special_files_are_what_they_are() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    for special in ["interix", "wsl"] {
        let image = images.made("special.img", "", 6 * MIB);
        let options = format!("special_files={special}");
        let mount = mounted(&images, &image, &options);
        let line =
            "mknod null c 1 3; mknod disk b 259 70000; mkfifo fifo; ln -s ../some/target link";
        let mut sh = std::process::Command::new("sh");
        run(sh.args(["-ec", line]).current_dir(mount.dir()));
        let socket = mount.dir().join("socket");
        mknodat(CWD, socket, FileType::Socket, Mode::RWXU, 0).expect("a socket");
        drop(mount);
        compare(&images, &image, special);
    }
}

#[test]
fn compressed_files_are_unpacked() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    for how in ["-C", "-C -c 1024"] {
        let image = images.made("packed.img", how, 24 * MIB);
        let mount = mounted(&images, &image, "compression");
        let words = "words that come again and again, 0123456789. ";
        for (name, len) in [
            ("text", 500_000),
            ("short", 900),
            ("unit", 65_536),
            ("tail", 65_537),
        ] {
            fs::write(mount.dir().join(name), &words.repeat(len / 40)[..len]).unwrap();
        }
        fs::write(mount.dir().join("noise"), noise(300_000)).unwrap();
        let mixed = [
            noise(70_000),
            vec![0; 200_000],
            words.repeat(5000).into_bytes(),
            noise(5000),
        ];
        fs::write(mount.dir().join("mixed"), mixed.concat()).unwrap();
        let holes = fs::File::create(mount.dir().join("holes")).unwrap();
        holes
            .write_all_at(words.repeat(300).as_bytes(), 1_000_000)
            .unwrap();
        holes.set_len(2_000_000).unwrap();
        drop(mount);
        compare(&images, &image, how);
        let runs = tools::dump(&file(&image), "runs /text");
        assert!(runs.contains("hole"), "it is not compressed: {runs}");
    }
}

/// Returns bytes that cannot be compressed.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Fills the volume, gives every second file back, and puts into the gaps a file of so many tenths of
/// all, and, so that the table of records grows there, small ones.
fn break_up(dir: &Path, tenths: u64) {
    let filler = |n: u64| dir.join(format!("filler {n}"));
    let fill = |n: &u64| fs::write(filler(*n), pattern(*n, 2500)).is_ok();
    let count = (0..9000).take_while(fill).count() as u64;
    for n in (0..count).step_by(2) {
        fs::remove_file(filler(n)).unwrap();
    }
    let len = usize::try_from(count * tenths / 10 * 2560).unwrap();
    fs::write(dir.join("broken"), pattern(1, len)).unwrap();
    let small = |n: &u64| fs::write(dir.join(format!("small {n}")), b"x").is_ok();
    let made = (0..9000).take_while(small).count();
    assert!(made > 300, "{made} of {count}");
}

#[test]
fn a_file_and_a_table_of_records_in_pieces_are_read_whole() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    for (tenths, which) in [(2, "0"), (3, "/broken")] {
        let image = images.filled("-c 512 -z 1", 10 * MIB, |dir| break_up(dir, tenths));
        compare(&images, &image, "pieces");
        let list = tools::dump(&file(&image), &format!("list {which}"));
        assert!(list.matches("$DATA").count() > 1, "{which}: {list}");
    }
}

#[test]
fn what_was_deleted_is_not_there() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let image = images.filled("", 8 * MIB, |dir| {
        for n in 0..200 {
            fs::write(dir.join(format!("gone {n}")), pattern(n, 3000)).unwrap();
        }
        attribute(&dir.join("gone 7"), "user.stream", &[7; 5000]);
        fs::write(dir.join("stays"), "stays").unwrap();
        for n in 0..200 {
            fs::remove_file(dir.join(format!("gone {n}"))).unwrap();
        }
    });
    compare(&images, &image, "deleted");
    let dev = file(&image);
    let fs = attach_as(dev.clone(), "").unwrap();
    let names: Vec<Vec<u8>> = ours(&fs, &dev).into_keys().collect();
    assert_eq!(names, [b"/stays".to_vec()]);
}

#[test]
fn owners_and_modes_are_those_of_descriptors_if_asked_for() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let image = images.made("modes.img", "", 8 * MIB);
    let mount = Mounted::new(&image, &images.path("mnt"), "permissions");
    let line = "for m in 644 600 755 700 640 444 777 751; do echo x > f$m; chmod $m f$m; done; \
        mkdir d; chmod 750 d; chown 1000:100 f640 d";
    run(std::process::Command::new("sh")
        .args(["-ec", line])
        .current_dir(mount.dir()));
    drop(mount);
    let dev = file(&image);
    let fs = attach_as(dev.clone(), "permissions").expect("attach");
    let seen = ours(&fs, &dev);
    assert_eq!(tools::check(&dev), [""; 0]);
    let mount = Mounted::new(&image, &images.path("mnt"), "ro,atime,permissions");
    assert_same("permissions", &told(&seen), &told(&host(mount.dir())));
    drop(mount);
    let owner = |name: &[u8]| seen.get(name).map(|row| (row.mode, row.owner));
    assert_eq!(owner(b"/f640"), Some((0o640, (1000, 100))));
}

/// Reparse points as Windows writes them: ntfs-3g stores what it is given.
#[test]
fn symlinks_and_tags_of_windows_are_read() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let tagged = |tag: u32, data: &[u8]| {
        let head = [tag.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
        [&head, data].concat()
    };
    let target = wide("few\\file");
    let len = target.len() as u16;
    let names = [0, len, 0, len, 1, 0].map(u16::to_le_bytes).concat();
    let link = tagged(0xa000_000c, &[names, target].concat());
    let place = wide("\\??\\C:\\few\0");
    let len = place.len() as u16 - 2;
    let names = [0, len, len + 2, 0].map(u16::to_le_bytes).concat();
    let junction = tagged(0xa000_0003, &[names, place, vec![0; 2]].concat());
    let image = images.filled("", 8 * MIB, |dir| {
        for name in ["link", "packed"] {
            fs::write(dir.join(name), "").unwrap();
        }
        fs::create_dir(dir.join("junction")).unwrap();
        let name = "system.ntfs_reparse_data";
        attribute(&dir.join("link"), name, &link);
        attribute(&dir.join("junction"), name, &junction);
        attribute(
            &dir.join("packed"),
            name,
            &tagged(0x8000_0017, &[1, 0, 0, 0]),
        );
    });
    let dev = file(&image);
    assert_eq!(tools::check(&dev), [""; 0]);
    let fs = attach_as(dev, "").expect("attach");
    volary_testkit::volumes::as_root(|cx| {
        let find = |name: &str| {
            let name = volary_core::Name::new(name.as_bytes()).unwrap();
            fs.lookup(cx, fs.root(), name).expect("lookup").node
        };
        assert_eq!(fs.readlink(cx, find("link")).unwrap(), b"few/file");
        assert_eq!(fs.readlink(cx, find("junction")).unwrap(), b"C:/few");
        let packed = find("packed");
        let e = fs.open(cx, packed, volary_core::Mode::Read).unwrap_err();
        assert_eq!(e, volary_core::Kind::Unsupported);
        assert!(e.to_string().contains("WOF"), "{e}");
        let raw = fs
            .getxattr(cx, packed, b"system.ntfs_reparse_data")
            .unwrap();
        assert_eq!(raw[..4], 0x8000_0017u32.to_le_bytes());
        assert!(
            !fs.getxattr(cx, packed, b"system.ntfs_acl")
                .unwrap()
                .is_empty()
        );
    });
}

/// What Linux's ntfs3 keeps of a device: attributes of OS/2 and no reparse point.
#[test]
fn a_mode_in_extended_attributes_says_what_a_file_is() {
    if !can_mount() {
        return;
    }
    let ea = |next: u32, name: &[u8], value: &[u8]| {
        let mut out = next.to_le_bytes().to_vec();
        out.extend([0, name.len() as u8]);
        out.extend((value.len() as u16).to_le_bytes());
        out.extend([name, b"\0", value].concat());
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let numbers = [8u32, 17].map(u32::to_le_bytes).concat();
    let all = [
        ea(20, b"$LXUID", &1000u32.to_le_bytes()),
        ea(20, b"$LXGID", &100u32.to_le_bytes()),
        ea(20, b"$LXMOD", &0o60_640u32.to_le_bytes()),
        ea(24, b"$LXDEV", &numbers),
    ];
    let images = Images::new();
    let image = images.filled("", 6 * MIB, |dir| {
        fs::write(dir.join("disk"), "").unwrap();
        attribute(&dir.join("disk"), "system.ntfs_ea", &all.concat());
    });
    let dev = file(&image);
    assert_eq!(tools::check(&dev), [""; 0]);
    let fs = attach_as(dev.clone(), "").expect("attach");
    // It compares kinds as listed with those of attributes.
    let walk = volary_testkit::volumes::as_root(|cx| volary_testkit::tree::Tree::read(&fs, cx));
    assert_eq!(walk.expect("a walk").0.len(), 1);
    let row = &ours(&fs, &dev)[&b"/disk".to_vec()];
    assert_eq!((row.kind, row.mode), (FileKind::BlockDevice, 0o640));
    assert_eq!((row.owner, row.rdev), ((1000, 100), (8, 17)));
}

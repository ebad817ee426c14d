//! What ntfs-3g writes is read as it reads it.

use crate::images::{Images, Mounted, attribute, can_mount, fill, run};

use crate::{attach_as, file, tools};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use volary_core::FileKind;
use volary_testkit::rng::pattern;
use volary_testkit::view::{View, assert_same, host, ours};

const MIB: u64 = 1 << 20;

/// What both tell: ntfs-3g has no sizes of directories, and no modes of special files.
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
    let mounted = Mounted::new(images, image, "ro");
    assert_same(how, &told(&seen), &told(&host(mounted.dir())));
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
        let mounted = Mounted::new(&images, &image, &options);
        let line =
            "mknod null c 1 3; mknod disk b 259 70000; mkfifo fifo; ln -s ../some/target link";
        let mut sh = std::process::Command::new("sh");
        run(sh.args(["-ec", line]).current_dir(mounted.dir()));
        let socket = mounted.dir().join("socket");
        mknodat(CWD, socket, FileType::Socket, Mode::RWXU, 0).expect("a socket");
        drop(mounted);
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
        let mounted = Mounted::new(&images, &image, "compression");
        let words = "words that come again and again, 0123456789. ";
        for (name, len) in [
            ("text", 500_000),
            ("short", 900),
            ("unit", 65_536),
            ("tail", 65_537),
        ] {
            fs::write(mounted.dir().join(name), &words.repeat(len / 40)[..len]).unwrap();
        }
        fs::write(mounted.dir().join("noise"), noise(300_000)).unwrap();
        let mixed = [
            noise(70_000),
            vec![0; 200_000],
            words.repeat(5000).into_bytes(),
            noise(5000),
        ];
        fs::write(mounted.dir().join("mixed"), mixed.concat()).unwrap();
        let holes = fs::File::create(mounted.dir().join("holes")).unwrap();
        holes
            .write_all_at(words.repeat(300).as_bytes(), 1_000_000)
            .unwrap();
        holes.set_len(2_000_000).unwrap();
        drop(mounted);
        compare(&images, &image, how);
        let runs = tools::dump(&file(&image), "runs /text");
        assert!(runs.contains("hole"), "it is not compressed: {runs}");
    }
}

/// Bytes that cannot be compressed.
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

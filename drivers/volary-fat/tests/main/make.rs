//! What others say of volumes that we made.

use crate::tools::{assert_clean, run};
use std::path::Path;
use volary_block::{FileDevice, OpenOptions};
use volary_core::{Make, Options, Time};
use volary_fat::make::make;
use volary_fat::volume::{FatKind, Layout};
use volary_fat::walk::Walker;
use volary_testkit::oracle::vm;

const MIB: u64 = 1 << 20;

fn volume(path: &Path, size: u64, kind: FatKind, label: Option<&str>, options: &str) -> Layout {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(size).unwrap();
    let dev = FileDevice::open(path, OpenOptions::default()).unwrap();
    let how = Make {
        label: label.map(Into::into),
        now: Time::from_secs(1_700_000_000),
        seed: 1,
        options: Options::parse(options),
    };
    make(&dev, kind, &how).unwrap_or_else(|e| panic!("{kind:?} {size} {options}: {e}"));
    Layout::read(&dev).unwrap()
}

/// Sizes, kinds and options that are each made and looked at.
fn grid() -> Vec<(FatKind, u64, String)> {
    let mut all = Vec::new();
    for kib in [160, 180, 320, 360, 640, 720, 1200, 1440, 2880] {
        all.push((FatKind::Fat12, kib << 10, String::new()));
    }
    for (kind, sizes) in [
        (FatKind::Fat12, [MIB, 7 * MIB + 512, 100 * MIB]),
        (FatKind::Fat16, [16 * MIB, 100 * MIB + 1536, 2047 * MIB]),
        (FatKind::Fat32, [48 * MIB, 300 * MIB + 512 * 5, 9000 * MIB]),
    ] {
        for size in sizes {
            for options in [
                "",
                "unix",
                "fats=1",
                "fats=3",
                "hidden=2048,serial=12345678",
                "align=no",
                "reserved=40",
            ] {
                all.push((kind, size, options.into()));
            }
        }
    }
    for (sector, kind, size) in [
        (1024, FatKind::Fat12, 2 * MIB),
        (2048, FatKind::Fat16, 20 * MIB),
        (4096, FatKind::Fat16, 40 * MIB),
        (4096, FatKind::Fat32, 300 * MIB),
    ] {
        for unix in ["", ",unix"] {
            all.push((kind, size, format!("sector={sector}{unix}")));
        }
    }
    for cluster in ["512", "1k", "2k", "4k", "8k", "16k", "32k", "64k"] {
        all.push((FatKind::Fat32, 5000 * MIB, format!("cluster={cluster}")));
        all.push((
            FatKind::Fat12,
            2 * MIB,
            format!("cluster={cluster},root-entries=64"),
        ));
    }
    all.push((FatKind::Fat32, 64 * MIB, "backup=12,reserved=32".into()));
    all
}

#[test]
fn others_agree_on_every_volume_of_the_grid() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume.img");
    let image = path.to_str().unwrap();
    for (i, (kind, size, options)) in grid().into_iter().enumerate() {
        let about = format!("{} of {size} bytes with '{options}'", kind.name());
        let label = (i % 2 == 0).then_some("Some Label");
        let layout = volume(&path, size, kind, label, &options);
        assert_eq!(layout.kind, kind, "{about}");
        // fsck.fat knows no more than two FATs.
        if layout.fat_count <= 2 {
            assert_clean(&path, &about);
        }
        check_minfo(image, &layout, &about);
        check_mdir(image, label, &about);
        check_blkid(image, &layout, label, &about);
        check_file(image, kind, &about);
    }
}

#[test]
fn a_small_fat32_is_one_for_fsck_fat_which_warns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume.img");
    volume(&path, 2 * MIB, FatKind::Fat32, None, "small");
    if let Some(answer) = run("fsck.fat", &["-n", path.to_str().unwrap()]) {
        assert_eq!(answer.code, 0, "{}", answer.text);
        assert!(
            answer.text.contains("Filesystem is FAT32"),
            "{}",
            answer.text
        );
    }
}

fn check_minfo(image: &str, layout: &Layout, about: &str) {
    let Some(answer) = run("minfo", &["-i", image, "::"]) else {
        return;
    };
    assert_eq!(answer.code, 0, "{about}: {}", answer.text);
    let cluster = layout.cluster_len / layout.sector_len;
    for line in [
        format!("sector size: {} bytes", layout.sector_len),
        format!("cluster size: {cluster} sectors"),
        format!("reserved (boot) sectors: {}", layout.reserved_sectors),
        format!("fats: {}", layout.fat_count),
        format!(
            "max available root directory slots: {}",
            layout.root_entries
        ),
    ] {
        assert!(
            answer.text.contains(&line),
            "{about}: no '{line}' in {}",
            answer.text
        );
    }
}

fn check_mdir(image: &str, label: Option<&str>, about: &str) {
    let Some(answer) = run("mdir", &["-a", "-i", image, "::"]) else {
        return;
    };
    assert_eq!(answer.code, 0, "{about}: {}", answer.text);
    if label.is_some() {
        assert!(
            answer.text.contains("SOME LABEL"),
            "{about}: {}",
            answer.text
        );
    }
}

fn check_blkid(image: &str, layout: &Layout, label: Option<&str>, about: &str) {
    let Some(answer) = run("blkid", &["-p", "-o", "export", image]) else {
        return;
    };
    let serial = layout.serial.unwrap();
    let uuid = format!("UUID={:04X}-{:04X}", serial >> 16, serial & 0xffff);
    assert!(
        answer.text.contains("TYPE=vfat"),
        "{about}: {}",
        answer.text
    );
    assert!(answer.text.contains(&uuid), "{about}: {}", answer.text);
    assert_eq!(
        answer.text.contains("LABEL=SOME"),
        label.is_some(),
        "{about}: {}",
        answer.text
    );
}

fn check_file(image: &str, kind: FatKind, about: &str) {
    let Some(answer) = run("file", &["-b", image]) else {
        return;
    };
    let bits = format!("FAT ({} bit)", kind.bits());
    assert!(answer.text.contains(&bits), "{about}: {}", answer.text);
}

#[test]
fn linux_mounts_and_fills_what_we_made() {
    let Some(vmrun) = vm::find() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let kinds = [
        (FatKind::Fat12, 1440 << 10, "unix"),
        (FatKind::Fat12, 8 * MIB, "sector=4096"),
        (FatKind::Fat16, 64 * MIB, ""),
        (FatKind::Fat16, 64 * MIB, "unix,fats=3"),
        (FatKind::Fat32, 64 * MIB, "unix"),
        (FatKind::Fat32, 5000 * MIB, "cluster=64k"),
    ];
    let path = |i: usize| dir.path().join(format!("{i}.img"));
    let paths: Vec<_> = (0..kinds.len()).map(path).collect();
    for (path, (kind, size, options)) in paths.iter().zip(kinds) {
        volume(path, size, kind, Some("linux"), options);
    }
    let script = "for d in /dev/vd?; do mount -t vfat -o utf8 $d /mnt && \
        echo text > '/mnt/A long näme.txt' && mkdir /mnt/dir && cp '/mnt/A long näme.txt' /mnt/dir/b && \
        umount /mnt && echo good; done";
    let disks: Vec<_> = paths
        .iter()
        .map(|p| (p.as_path(), vm::Disk::Write))
        .collect();
    let printed = vm::script(&vmrun, &disks, None, script).unwrap();
    assert_eq!(printed.matches("good").count(), kinds.len(), "{printed}");
    for (path, (kind, _, options)) in paths.iter().zip(kinds) {
        if !options.contains("fats=3") {
            assert_clean(path, &format!("{} '{options}' after Linux", kind.name()));
        }
        let dev = FileDevice::open(path, OpenOptions::default()).unwrap();
        let layout = Layout::read(&dev).unwrap();
        let walker = Walker::new(&dev, &layout);
        let found = walker.find("/a LONG NÄME.txt").unwrap().unwrap();
        assert_eq!(walker.content(&found.entry, 100).unwrap(), b"text\n");
        assert!(walker.find("/dir/b").is_ok());
    }
}

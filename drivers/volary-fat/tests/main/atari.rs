//! Atari's FAT: a boot sector without a signature, and FAT16 on small disks.

use crate::check::run::{check, show};
use crate::samples::{comparable, tree};
use crate::tools::run;
use crate::volumes::{Image, attach};
use volary_core::{CheckMode, Create, Format, Kind, Name, SetAttr};
use volary_fat::FAT;
use volary_testkit::oracle::{dosfstools, have, mtools};
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;

/// Writes a directory and a file to an image; what is on it then.
fn fill(image: &Image) -> volary_testkit::tree::Tree {
    let dev = image.device();
    let fs = attach(dev.clone(), "");
    let seen = as_root(|cx| {
        let set = SetAttr::mode(0o755);
        let dir = Name::new(b"FOLDER").unwrap();
        let dir = fs.mkdir(cx, fs.root(), dir, &set).unwrap().node;
        let name = Name::new(b"FILE.TXT").unwrap();
        let (_, open) = fs.create(cx, dir, name, Create::New, &set).unwrap();
        fs.write(cx, open, Some(0), &[7; 90_000]).unwrap();
        fs.close(cx, open).unwrap();
        let seen = tree(&fs, cx);
        fs.detach(cx).unwrap();
        seen
    });
    std::fs::write(image.path(), dev.to_vec()).unwrap();
    seen
}

#[test]
fn ataris_volumes_are_recognised_read_and_written() {
    if !have(&[dosfstools::MKFS, dosfstools::FSCK, mtools::MCOPY]) {
        return;
    }
    for (len, kind) in [
        (720 << 10, "fat12"),
        (2 * MIB, "fat16"),
        (40 * MIB, "fat16"),
    ] {
        let image = Image::new(len);
        dosfstools::make(&image.path(), &["-A"]).expect("mkfs.fat");
        let probe = FAT.probe(&*image.device()).unwrap().unwrap();
        assert_eq!(probe.kind, kind, "{len}");
        let seen = fill(&image);
        let path = image.path();
        // It finds no label in what mkfs.fat makes, before and after.
        let checked = run("fsck.fat", &["-A", "-n", path.to_str().unwrap()]);
        let text = checked.expect("fsck.fat").text;
        let own = ["fsck.fat", "Label", "  Auto-removing", "Leaving", "/"];
        let more = |line: &&str| !line.is_empty() && !own.iter().any(|own| line.starts_with(own));
        let found: Vec<_> = text.lines().filter(more).collect();
        assert_eq!(found, [""; 0], "{len}: {text}");
        // mtools takes so few clusters for FAT12.
        if len != 2 * MIB {
            let theirs = mtools::tree(&path).expect("mcopy");
            comparable(theirs).assert_same(&comparable(seen.clone()));
        }
        let done = check(&std::fs::read(&path).unwrap(), CheckMode::Look, "");
        assert_eq!(done.codes(), [""; 0], "{len}: {}", show(&done.findings));
        let fs = attach(image.device(), "");
        seen.assert_same(&as_root(|cx| tree(&fs, cx)));
    }
}

#[test]
fn without_a_signature_a_fat_must_be_where_the_boot_sector_says() {
    if !have(&[dosfstools::MKFS]) {
        return;
    }
    let image = Image::new(2 * MIB);
    dosfstools::make(&image.path(), &["-A"]).expect("mkfs.fat");
    let dev = image.device();
    let mut bytes = dev.to_vec();
    let fat_len = 512 * usize::from(bytes[22]);
    for at in [512, 512 + fat_len] {
        bytes[at] = 0;
    }
    let dev = std::sync::Arc::new(volary_block::MemDevice::from_vec(bytes));
    assert!(FAT.probe(&*dev).unwrap().is_none());
    let failed = FAT.attach(dev, &volary_core::Attach::default());
    assert_eq!(failed.err().unwrap(), Kind::Corrupt);
}

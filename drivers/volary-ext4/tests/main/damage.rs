//! One bit turned over in each structure: it is told, nothing panics, and nothing takes long.

use crate::images::{E2FSCK, Images, can_make, debugfs};
use crate::{attach_as, memory, tools};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use volary_core::{BlockDevice, Format};
use volary_ext4::EXT4;
use volary_testkit::volumes::look;

/// Returns everything that can be asked of a volume; the findings of its check.
fn ask(dev: &Arc<dyn BlockDevice>) -> Option<Vec<String>> {
    for options in ["", "noload,nochecksums"] {
        if let Ok(fs) = attach_as(dev.clone(), options) {
            look(&fs, 2000, |_| ());
        }
    }
    let _ = (EXT4.info(dev.clone()), EXT4.map(dev.clone(), 100));
    for what in [
        "superblock",
        "group 0",
        "inode",
        "directory",
        "journal",
        "blocks 12",
        "htree 12",
    ] {
        let what: Vec<String> = what.split(' ').map(Into::into).collect();
        let _ = EXT4.dump(dev.clone(), &what, &mut String::new());
    }
    let mut found = Vec::new();
    let mut tell = |finding: &volary_core::Finding| {
        found.push(finding.code.to_owned());
        volary_core::Answer::No
    };
    let how = volary_core::Check {
        mode: volary_core::CheckMode::Look,
        now: volary_core::Time::EPOCH,
        options: volary_core::Options::new(),
    };
    let done = EXT4.check(dev.clone(), &how, &mut tell, &volary_core::Quiet);
    done.is_ok().then_some(found)
}

/// Returns a number after the words in a dump.
fn number(text: &str, key: &str) -> u64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(key));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{key}: {text}"))
}

/// Returns the offset of the first block of a file or directory.
fn first_block(dev: &Arc<dyn BlockDevice>, ino: u64, block: u64) -> u64 {
    let text = tools::dump(dev, &format!("blocks {ino}"));
    let at = text
        .split(" at ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let at = at.and_then(|at| at.trim_end_matches(',').parse::<u64>().ok());
    at.expect("a block") * block
}

/// Returns where structures stand, and what a check calls their damage.
fn structures(dev: &Arc<dyn BlockDevice>, block: u64) -> Vec<(&'static str, u64, u64)> {
    let group = tools::dump(dev, "group 0");
    let place = |key| number(&group, key) * block;
    let descriptor = group
        .lines()
        .next()
        .and_then(|line| line.rsplit(' ').next());
    let descriptor = descriptor.and_then(|at| at.parse().ok()).expect("a place");
    let table = place("bg_inode_table");
    vec![
        ("superblock", 1024, 1024),
        ("group", descriptor, 32),
        ("bitmap-sum", place("bg_block_bitmap"), block / 4),
        ("bitmap-sum", place("bg_inode_bitmap"), 8),
        ("inode", table + 256, 160),
        ("inode", table + 11 * 256, 160),
        ("directory", first_block(dev, 2, block), block),
        ("directory", first_block(dev, 11, block), block),
    ]
}

/// Flips bits in each of these structures, and asserts that the check reports its code.
fn each_is_told(good: &[u8], places: Vec<(&str, u64, u64)>) {
    for (code, at, len) in places {
        for step in 0..12 {
            let byte = at + step * 7919 % len;
            let mut bytes = good.to_vec();
            bytes[usize::try_from(byte).unwrap()] ^= 1 << (step % 8);
            let found = ask(&memory(bytes));
            // Without a check there is no volume to speak of: that was told.
            if let Some(found) = found {
                assert!(
                    found.iter().any(|told| told == code),
                    "{code} at {byte}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_bit_turned_over_in_any_structure_is_told() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.path("few");
    std::fs::create_dir_all(source.join("dir")).expect("a directory");
    std::fs::write(source.join("file"), vec![5; 30_000]).expect("a file");
    let image = images.made("bits.img", "-t ext4 -b 1024 -N 128", "2M", Some(&source));
    let good = std::fs::read(&image).expect("an image");
    let places = structures(&memory(good.clone()), 1024);
    each_is_told(&good, places);
}

#[test]
fn two_entries_of_one_name_are_told() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.path("pair");
    std::fs::create_dir_all(&source).expect("a directory");
    for name in ["one", "two"] {
        std::fs::write(source.join(name), name).expect("a file");
    }
    // Without checksums, which would be wrong too.
    let image = images.made("pair.img", "-t ext2 -b 1024 -N 128", "2M", Some(&source));
    let mut bytes = std::fs::read(&image).expect("an image");
    assert_eq!(ask(&memory(bytes.clone())), Some(Vec::new()));
    // The length of the name, the type of a file, and the name.
    let entry = bytes.windows(5).position(|at| at == b"\x03\x01two");
    let entry = entry.expect("an entry");
    bytes[entry + 2..entry + 5].copy_from_slice(b"one");
    assert_eq!(ask(&memory(bytes)), Some(vec!["same-name".to_owned()]));
}

/// Returns a volume with an extent node, an attribute block and a directory with a hash tree.
fn with_trees(images: &Images) -> Vec<u8> {
    let source = images.path("trees");
    std::fs::create_dir_all(source.join("dir")).expect("a directory");
    for number in 0..150 {
        let name = format!("dir/a name of some length {number}");
        std::fs::write(source.join(name), "").expect("a file");
    }
    let broken = std::fs::File::create(source.join("broken")).expect("a file");
    for number in 0..10 {
        let at = number * 20 * 1024;
        broken
            .write_all_at(&[7; 1024], at)
            .expect("a file with holes");
    }
    let image = images.made("trees.img", "-t ext4 -b 1024 -N 256", "4M", Some(&source));
    debugfs(
        &image,
        &format!("ea_set broken user.long {}\n", "x".repeat(500)),
    );
    let mut e2fsck = E2FSCK.command();
    // Indexes directories (-D); exits with 1, as it has changed something.
    e2fsck.args(["-fyD"]).arg(&image).output().expect("e2fsck");
    std::fs::read(&image).expect("an image")
}

/// Returns the offset of the only block that begins with these bytes.
fn block_of(image: &[u8], magic: &[u8]) -> u64 {
    let blocks = image.chunks(1024).enumerate();
    let mut found = blocks.filter(|(_, block)| block.starts_with(magic));
    let (number, _) = found.next().expect("a block");
    assert!(found.next().is_none(), "two blocks begin with {magic:x?}");
    number as u64 * 1024
}

#[test]
fn a_bit_turned_over_in_a_tree_or_an_attribute_is_told() {
    if !can_make() {
        return;
    }
    let good = with_trees(&Images::new());
    let dev = memory(good.clone());
    assert_eq!(ask(&dev).map(|found| found.len()), Some(0));
    let extents = block_of(&good, &[0x0a, 0xf3]);
    let attributes = block_of(&good, &0xea02_0000_u32.to_le_bytes());
    let has_tree = |ino: &u64| {
        let what = ["htree".to_owned(), ino.to_string()];
        EXT4.dump(dev.clone(), &what, &mut String::new()).is_ok()
    };
    let tree = (12..20).find(has_tree).expect("a hash tree");
    let tree = first_block(&dev, tree, 1024);
    each_is_told(
        &good,
        vec![
            ("map", extents, 1024),
            ("xattr", attributes, 1024),
            ("directory", tree + 24, 16),
        ],
    );
}

#[test]
fn bits_of_volumes_without_checksums_do_no_harm() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.path("few");
    std::fs::create_dir_all(source.join("dir")).expect("a directory");
    std::fs::write(source.join("file"), vec![5; 300_000]).expect("a file");
    for how in [
        "-t ext4 -b 1024 -N 64 -O ^metadata_csum,^uninit_bg,inline_data",
        "-t ext2 -b 1024 -N 64",
    ] {
        let image = images.made("bits.img", how, "1M", Some(&source));
        let good = std::fs::read(&image).expect("an image");
        let places = structures(&memory(good.clone()), 1024);
        for (number, (_, at, len)) in places.into_iter().enumerate() {
            for step in 0..10 {
                let byte = at + (step * 7919 + number as u64 * 13) % len;
                let mut bytes = good.clone();
                bytes[usize::try_from(byte).unwrap()] ^= 1 << (step % 8);
                ask(&memory(bytes));
            }
        }
    }
}

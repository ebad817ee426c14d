//! Volumes without their first superblock, or with damaged descriptors of groups: read by the replicas.

use crate::images::{E2FSCK, Images, can_make, debugfs};
use crate::{attach_as, memory, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volary_block::ByReplica;
use volary_core::{BlockDevice, Format};
use volary_ext4::EXT4;
use volary_testkit::rng::pattern;
use volary_testkit::view::{View, assert_same, ours};

/// How a volume is made, and how large.
const VOLUMES: &[(&str, &str)] = &[
    ("-t ext4 -b 1024", "24M"),
    ("-t ext4 -b 2048", "34M"),
    ("-t ext4 -b 4096", "148M"),
    ("-t ext4 -b 1024 -O meta_bg,^resize_inode", "24M"),
    ("-t ext4 -b 1024 -O ^metadata_csum,uninit_bg", "24M"),
    ("-t ext4 -b 1024 -O sparse_super2", "24M"),
    ("-t ext4 -b 1024 -O bigalloc,^resize_inode -C 4096", "36M"),
    ("-t ext2 -b 1024", "24M"),
    ("-t ext2 -b 1024 -r 0 -O none", "24M"),
];

fn tree(images: &Images) -> PathBuf {
    let source = images.path("few");
    fs::create_dir_all(source.join("dir/below")).expect("a directory");
    for number in 0..40u64 {
        let name = source.join(format!("dir/file{number}"));
        fs::write(name, pattern(number, 3000)).expect("a file");
    }
    fs::write(source.join("dir/below/large"), pattern(9, 2_000_000)).expect("a file");
    source
}

fn view(dev: &Arc<dyn BlockDevice>, what: &str) -> View {
    let fs = attach_as(dev.clone(), "").unwrap_or_else(|e| panic!("{what}: {e}"));
    ours(&fs, dev)
}

/// Returns where mke2fs says that it puts replicas of the superblock, in blocks.
fn places(how: &str, size: &str, image: &Path) -> Vec<u64> {
    let mut mke2fs = volary_testkit::oracle::MKE2FS.command();
    mke2fs.arg("-nF").args(how.split_whitespace()).arg(image);
    let told = mke2fs.arg(size).output().expect("mke2fs");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let (_, list) = told
        .split_once("stored on blocks:")
        .unwrap_or_else(|| panic!("{told}"));
    let words = list.split([',', ' ', '\n', '\t']);
    words.filter_map(|word| word.parse().ok()).collect()
}

/// A volume that is whole.
struct Whole {
    how: &'static str,
    size: &'static str,
    image: PathBuf,
    bytes: Vec<u8>,
    before: View,
}

/// Calls `test` with each of [`VOLUMES`].
fn each(test: impl Fn(Whole)) {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = tree(&images);
    for (how, size) in VOLUMES {
        let image = images.made("a.img", how, size, Some(&source));
        let bytes = fs::read(&image).expect("an image");
        let before = view(&memory(bytes.clone()), how);
        test(Whole {
            how,
            size,
            image,
            bytes,
            before,
        });
    }
}

#[test]
fn a_volume_without_its_first_superblock_is_read_by_a_replica() {
    each(|whole| {
        let Whole {
            how,
            size,
            image,
            mut bytes,
            before,
        } = whole;
        assert_eq!(
            EXT4.replica(&*memory(bytes.clone())).expect("a look"),
            None,
            "{how}"
        );
        let block = tools::dump(&memory(bytes.clone()), "superblock");
        let log = block
            .lines()
            .find_map(|line| line.trim().strip_prefix("s_log_block_size"));
        let log: u32 = log.and_then(|log| log.trim().parse().ok()).expect("a size");
        let block = 1024usize << log;
        // The superblock and all descriptors after it.
        let table = (1024 / block + 1) * block;
        bytes[..table + 64 * 8].fill(0xa5);
        let dev = memory(bytes);
        let replica = EXT4.replica(&*dev).expect("a look");
        let replica = replica.unwrap_or_else(|| panic!("{how}: no replica"));
        assert!(replica.is_confirmed, "{how}");
        assert!(how.contains(replica.kind), "{how}: {}", replica.kind);
        let there = places(how, size, &image);
        let at = replica.at / block as u64;
        assert!(there.contains(&at), "{how}: {at} of {there:?}");
        let laid = ByReplica::laid(dev.clone(), Some(&replica));
        assert_same(how, &view(&laid, how), &before);
        let found = tools::check(&dev);
        for code in ["superblock: ", "group: "] {
            assert!(
                found.iter().any(|line| line.starts_with(code)),
                "{how}: {found:?}"
            );
        }
        assert!(EXT4.map(laid, 100).is_ok(), "{how}");
    });
}

#[test]
fn a_damaged_descriptor_hides_nothing() {
    each(|whole| {
        let Whole {
            how,
            mut bytes,
            before,
            ..
        } = whole;
        let told = tools::dump(&memory(bytes.clone()), "group 0");
        let at = told.lines().next().and_then(|line| line.rsplit(' ').next());
        let at: usize = at.and_then(|at| at.parse().ok()).expect("a place");
        bytes[at..at + 32].fill(0);
        let dev = memory(bytes);
        assert_same(how, &view(&dev, how), &before);
        let found = tools::check(&dev);
        let others: Vec<_> = found
            .iter()
            .filter(|line| !line.starts_with("group: "))
            .collect();
        assert!(others.is_empty() && found.len() == 1, "{how}: {found:?}");
    });
}

#[test]
fn the_journal_is_replayed_by_a_replica_too() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let source = images.path("few");
    fs::create_dir_all(&source).expect("a directory");
    fs::write(source.join("one"), pattern(1, 1024)).expect("a file");
    let image = images.made("a.img", "-t ext4 -b 1024", "24M", Some(&source));
    let told = debugfs(&image, "bmap one 0\n");
    let block = told
        .lines()
        .rev()
        .find_map(|line| line.trim().parse::<u64>().ok());
    fs::write(images.path("new"), pattern(2, 1024)).expect("a block");
    let block = block.unwrap_or_else(|| panic!("{told}"));
    let new = images.path("new");
    debugfs(
        &image,
        &format!("jo -c -v 3\njw -b {block} {}\njc\n", new.display()),
    );
    let with_it = view(&memory(fs::read(&image).expect("an image")), "whole");
    let mut bytes = fs::read(&image).expect("an image");
    bytes[1024..2048].fill(0);
    let dev = memory(bytes);
    let replica = EXT4.replica(&*dev).expect("a look");
    let laid = ByReplica::laid(dev, replica.as_ref());
    assert_same("by a replica", &view(&laid, "by a replica"), &with_it);
    // e2fsck, which goes by a replica itself, replays the same.
    let copy = images.path("copy.img");
    let mut bytes = fs::read(&image).expect("an image");
    bytes[1024..2048].fill(0);
    fs::write(&copy, bytes).expect("a copy");
    let mut e2fsck = E2FSCK.command();
    e2fsck
        .args(["-fy", "-b", "8193"])
        .arg(&copy)
        .output()
        .expect("e2fsck");
    let by_e2fsck = view(&memory(fs::read(&copy).expect("an image")), "e2fsck");
    assert_same("e2fsck", &by_e2fsck, &with_it);
}

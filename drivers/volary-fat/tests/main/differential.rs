//! Random operations on FAT volumes and on the model; fsck.fat looks at each
//! volume at the end. `VOLARY_SEQS` says how many sequences of each kind.

use crate::volumes::{fresh, shape};
use volary_core::{Attach, FileSystem, fold};
use volary_testkit::diff::{Diff, NAMES, Rules, Times};
use volary_testkit::oracle::{dosfstools, have};
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

/// Returns what VFAT cannot keep (specification, page 29), and what other systems
/// would cut off at the end.
fn refuses(name: &[u8]) -> bool {
    let forbidden = |b: &u8| *b < 0x20 || b"\"*/:<>?\\|".contains(b);
    name.iter().any(forbidden) || matches!(name.last(), Some(b'.' | b' '))
}

/// Names that meet in their short forms.
const SHORT: &[&str] = &["longname.txt", "LONGNAMES.TXT", "a.b", "Mix.txt"];

fn rules(times: Times) -> Rules {
    let attach = Attach::default();
    let (files, dirs) = (0o777 & !attach.umask, 0o777 & !attach.umask);
    Rules {
        names: NAMES.iter().chain(SHORT).map(ToString::to_string).collect(),
        fold,
        refuses,
        times,
        owner: (attach.uid, attach.gid, files, dirs),
    }
}

fn run(shape: Shape, count: u64) {
    have(&[dosfstools::FSCK]);
    let times = if shape.attach.contains("unix=on") {
        Times::All
    } else {
        Times::Files
    };
    Diff::new(shape.name(), move || fresh(&shape))
        .rules(rules(times))
        .run(0, count);
}

#[test]
fn fat12_equals_the_model() {
    run(shape("fat12", 6 * MIB), 200);
}

#[test]
fn fat16_equals_the_model() {
    run(shape("fat16", 12 * MIB), 200);
}

#[test]
fn fat32_equals_the_model() {
    run(shape("fat32", 40 * MIB), 200);
}

#[test]
fn with_the_unix_extension_it_equals_the_model() {
    run(shape("fat12", 6 * MIB).attached("unix=on"), 60);
    run(shape("fat16", 12 * MIB).attached("unix=on"), 60);
    run(shape("fat32", 40 * MIB).attached("unix=on"), 60);
}

#[test]
fn a_volume_that_is_soon_full_equals_the_model() {
    run(shape("fat12", 256 << 10), 200);
}

#[test]
fn large_sectors_and_clusters_equal_the_model() {
    run(shape("fat12", 16 * MIB).made("sector=4096"), 40);
    run(shape("fat16", 300 * MIB).made("cluster=64k"), 40);
}

#[test]
fn an_empty_volume_is_what_the_model_starts_from() {
    let fresh = shape("fat16", 12 * MIB).device();
    let fs = crate::volumes::attach(fresh, "");
    volary_testkit::volumes::as_root(|cx| {
        let tree = volary_testkit::tree::Tree::read(&fs, cx).expect("the tree");
        assert!(tree.0.is_empty());
        FileSystem::detach(&*fs, cx).expect("detach");
    });
}

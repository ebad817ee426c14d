//! What is right passes, and what cannot run is not counted as passed.

use crate::volumes::{manifest, reader, writer};
use std::time::Duration;
use volary_core::{Caps, Fs, Layer, Result, StatFs};
use volary_test::{Lack, Manifest, Suite, hostfs, reference};

#[test]
fn a_volume_that_reads_conforms_to_the_reference_tree() {
    let report = Suite::reading("mem", reader, &manifest()).run();
    assert!(report.passed.len() >= 45, "{report}");
}

#[test]
fn a_volume_that_reads_conforms_to_itself() {
    Suite::coherent("mem", reader).expect("a look").run();
}

#[test]
fn a_volume_that_writes_conforms_and_what_needs_attaching_again_is_skipped() {
    let report = Suite::new("mem", writer).run();
    let skipped = report.skipped.iter().map(|(case, _)| *case);
    let skipped: Vec<_> = skipped.collect();
    assert!(
        skipped.contains(&"content_is_there_after_reattaching"),
        "{report}"
    );
    assert!(
        skipped.contains(&"attached_for_reading_it_reads_the_same"),
        "{report}"
    );
    assert!(report.passed.len() > 150, "{report}");
}

#[test]
fn the_reference_tree_is_the_same_as_a_directory_and_as_a_tar() {
    let dir = tempfile::tempdir().expect("a directory");
    let (tree, tar) = (dir.path().join("tree"), dir.path().join("tar"));
    std::fs::create_dir(&tree).expect("a directory");
    let mut manifest = reference::tree();
    if !rustix::process::geteuid().is_root() {
        manifest = manifest.without(Lack::Owners);
    }
    manifest.write_dir(&tree).expect("a tree");
    manifest
        .write_tar(std::fs::File::create(&tar).expect("a file"))
        .expect("a tar");
    let open = move || {
        let caps = hostfs::unix_caps().without(Caps::WRITE);
        hostfs::open(&tree, caps).expect("the directory")
    };
    for (name, manifest) in [
        ("as made", manifest),
        (
            "as a directory",
            Manifest::of_dir(&dir.path().join("tree")).expect("a manifest"),
        ),
        ("as a tar", Manifest::of_tar(&tar).expect("a manifest")),
    ] {
        // The host's own mount takes changes.
        let open = open.clone();
        let suite = Suite::reading(format!("directory, {name}"), open, &manifest);
        hostfs::excused(suite).run();
    }
}

/// Never answers.
struct Hanging(Fs);

impl Layer for Hanging {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn statfs(&self, _: &volary_core::Ctx<'_>) -> Result<StatFs> {
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_case_that_hangs_fails_by_name_and_the_suite_goes_on() {
    let make = || std::sync::Arc::new(Hanging(reader())) as Fs;
    let suite = Suite::reading("hanging", make, &manifest());
    let report = suite.limit(Duration::from_secs(5)).report();
    let failed: Vec<_> = report.failed.iter().map(|f| f.case).collect();
    assert_eq!(failed, ["statfs_makes_sense"], "{report}");
    let failure = &report.failed[0];
    assert!(failure.what.contains("hangs"), "{failure}");
    assert_eq!(failure.contract, "Returns how full the volume is.");
    assert!(
        failure.alone.contains("VOLARY_CASE=statfs_makes_sense"),
        "{failure}"
    );
}

//! What is right passes, and what cannot run is not counted as passed.

use crate::volumes::{manifest, reader, writer};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use volary_core::{Caps, Ctx, Fs, Layer, OpenId, Result, StatFs};
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
    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_case_that_hangs_fails_by_name_and_the_suite_goes_on() {
    let make = || Arc::new(Hanging(reader())) as Fs;
    let suite = Suite::reading("hanging", make, &manifest());
    let report = suite.limit(Duration::from_secs(20)).report();
    let failed: Vec<_> = report.failed.iter().map(|f| f.case).collect();
    let hang = ["statfs_makes_sense", "statfs_covers_what_the_volume_holds"];
    assert_eq!(failed, hang, "{report}");
    let failure = &report.failed[0];
    assert!(failure.what.contains("hangs"), "{failure}");
    assert_eq!(
        failure.contract,
        "Returns how full the volume is. What it holds is in use"
    );
    assert!(
        failure.alone.contains("VOLARY_CASE=statfs_makes_sense"),
        "{failure}"
    );
}

/// Panics where two threads at once read one open.
struct Crossed {
    below: Fs,
    reading: AtomicU32,
}

impl Layer for Crossed {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let others = self.reading.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        assert_eq!(others, 0, "the driver is not made for threads");
        let read = self.below.read(cx, open, offset, buf);
        self.reading.fetch_sub(1, Ordering::SeqCst);
        read
    }
}

/// The part of the next test that runs in a process of its own.
#[test]
#[ignore = "prints its report for another test"]
fn a_panic_in_a_thread_of_a_case() {
    let make = || {
        let (below, reading) = (reader(), AtomicU32::new(0));
        Arc::new(Crossed { below, reading }) as Fs
    };
    let suite = Suite::reading("crossed", make, &manifest());
    println!(
        "{}",
        suite.only("threads_that_read_one_open_agree").report()
    );
}

#[test]
fn a_panic_in_a_thread_of_a_case_is_told_in_the_report_alone() {
    let test = ["--exact", "holds::a_panic_in_a_thread_of_a_case"];
    let mut run = Command::new(std::env::current_exe().expect("this program"));
    let run = run.args(test).args(["--ignored", "--nocapture"]);
    let run = run.env_remove("VOLARY_CASE").output().expect("a run");
    let (out, err) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    let told = "FAILED: threads_that_read_one_open_agree: assertion `left == right` failed: \
                the driver is not made for threads";
    assert!(out.contains(told) && out.contains("holds.rs:"), "{out}");
    assert_eq!(err, "", "{out}");
}

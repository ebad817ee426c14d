//! Runs on modelled disks, in virtual time: the same result on every machine.
//!
//! Only requests advance the time; the processor's work is free.

use crate::trees::{aged, fresh, walk};
use crate::volumes::{Laid, session};
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_bulk::{BulkFileRead, Cleaning, Consumer, File, Method, Options, Part, Source, Summary};
use volary_fat::FAT;
use volary_ffs::FFS;
use volary_sim::hard::{HardDisk, Model};
use volary_sim::{Spinning, Timed};
use volary_testkit::volumes::{Shape, as_root, attach_read_only};

const MIB: u64 = 1 << 20;
/// The paper's two disks, and one of today.
const MODELS: [Model; 3] = [Model::FAST, Model::SLOW, Model::TODAY];
const FAT32: Shape = Shape::new(&FAT, "fat32", 272 * MIB).made("cluster=4k");
const FFS2: Shape = Shape::new(&FFS, "ffs2", 256 * MIB).made("block=32k");

/// A consumer that ignores what it is given.
struct Null;

impl Consumer for Null {
    fn take(&self, _: &File<'_>, _: Part<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns the milliseconds of reading as many bytes in sequence, in requests of 1 MiB.
fn sequential(model: Model, bytes: u64) -> f64 {
    let mut disk = HardDisk::new(model);
    for at in (0..bytes).step_by(MIB as usize) {
        disk.read(at, MIB.min(bytes - at));
    }
    disk.now() / 1e3
}

/// Runs the engine with the disk's clock. Returns milliseconds from attaching on, and the summary.
fn run(laid: &Laid, model: Model, options: &Options) -> (f64, Summary) {
    let device = Arc::new(Spinning::new(laid.device.clone(), HardDisk::new(model)));
    let fs = attach_read_only(laid.format, device.clone(), "").expect("attach");
    let clock = device.clone();
    let options = Options {
        clock: Some(Arc::new(move || clock.elapsed())),
        // One thread keeps the order of requests the same.
        depth: Some(1),
        ..options.clone()
    };
    let source = Source::new(session(fs)).on(device.clone());
    let memory = options.memory;
    let engine = BulkFileRead::new(options).expect("options");
    let sum = engine.run(&[source], &Null);
    assert!(sum.peak <= memory && sum.failed == 0, "{sum:?}");
    (device.now() / 1e3, sum)
}

/// Walks and reads file by file. Returns milliseconds, files and bytes.
fn walked(laid: &Laid, model: Model) -> (f64, u64, u64) {
    let device = Arc::new(Spinning::new(laid.device.clone(), HardDisk::new(model)));
    let fs = attach_read_only(laid.format, device.clone(), "").expect("attach");
    let (files, bytes) = as_root(|cx| walk(&fs, cx));
    (device.now() / 1e3, files, bytes)
}

/// Runs with the defaults. Returns its time over that of the same bytes in sequence, and the walk's time
/// over its own.
fn compared(laid: &Laid, model: Model) -> (f64, f64, Summary) {
    let (walk, files, bytes) = walked(laid, model);
    let (time, sum) = run(laid, model, &Options::default());
    assert_eq!((sum.files, sum.bytes), (files, bytes), "{}", laid.name);
    let times = time / sequential(model, bytes);
    println!(
        "{}: {times:.3} x sequential, {:.1} x as fast",
        laid.name,
        walk / time
    );
    (times, walk / time, sum)
}

#[test]
fn a_fresh_volume_takes_little_more_than_its_bytes_in_sequence() {
    // Directories on FAT are scattered among the files: a seek each.
    for (laid, most) in [
        (fresh(FAT32, 9000), [1.1, 1.1, 1.3]),
        (fresh(FFS2, 7000), [1.1, 1.1, 1.15]),
    ] {
        // Reading in sequence bounds what can be gained over the walk.
        let least = [8.5, 8.0, 14.0];
        for ((model, most), least) in MODELS.into_iter().zip(most).zip(least) {
            let (times, gain, sum) = compared(&laid, model);
            assert!(times <= most, "{}: {times} of {model:?}", laid.name);
            assert!(gain >= least, "{}: {gain} of {model:?}", laid.name);
            assert_eq!((sum.parts, sum.cleanings), (1, 0));
        }
    }
}

#[test]
fn an_aged_volume_takes_a_third_more_than_its_bytes_in_sequence() {
    for (laid, most, extents) in [
        (aged(FAT32, 8), [1.3, 1.3, 1.46], 2.0),
        (aged(FFS2, 8), [1.3, 1.3, 1.35], 1.15),
    ] {
        let least = [11.0, 11.0, 35.0];
        for ((model, most), least) in MODELS.into_iter().zip(most).zip(least) {
            let (times, gain, sum) = compared(&laid, model);
            assert!(times <= most, "{}: {times} of {model:?}", laid.name);
            assert!(gain >= least, "{}: {gain} of {model:?}", laid.name);
            let found = sum.fragments as f64 / sum.files as f64;
            assert!(found >= extents, "{}: {found} extents a file", laid.name);
        }
    }
}

/// Files are interleaved all over the disk: each is begun early and completed late.
#[test]
fn less_memory_costs_time_and_cleaning_less_of_it_than_sweeps() {
    let laid = aged(FFS2, 8);
    let with = |memory, cleaning| {
        let options = Options {
            memory,
            cleaning,
            ..Options::default()
        };
        run(&laid, Model::SLOW, &options)
    };
    let (all, sum) = with(1 << 32, Cleaning::OnDemand);
    assert_eq!(sum.cleanings, 0);
    for (part, most) in [(1, 1.05), (2, 1.25), (4, 1.55)] {
        let memory = sum.peak / part;
        // Each run asserts that it stays within its memory.
        let (cleaned, by_cleaning) = with(memory, Cleaning::OnDemand);
        let (swept, _) = with(memory, Cleaning::FirstFit);
        assert!(by_cleaning.cleanings > 0);
        let times = (cleaned / all, swept / all);
        println!(
            "1/{part}: {:.2} by cleaning, {:.2} by sweeps",
            times.0, times.1
        );
        assert!(cleaned <= all * most, "{cleaned} of {all} at 1/{part}");
        assert!(cleaned <= swept, "{cleaned} and {swept} at 1/{part}");
    }
}

#[test]
fn a_request_for_each_fragment_is_no_faster() {
    let laid = aged(FAT32, 2);
    for model in MODELS {
        let unmerged = Options {
            method: Method::DaftNm,
            ..Options::default()
        };
        let (merged, (alone, sum)) = (
            run(&laid, model, &Options::default()),
            run(&laid, model, &unmerged),
        );
        assert!(merged.0 <= alone * 1.001, "{} and {alone}", merged.0);
        assert!(merged.1.reads * 10 < sum.reads);
    }
}

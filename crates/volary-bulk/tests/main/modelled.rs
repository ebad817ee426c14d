//! How long a run takes on modelled disks, in virtual time: the same on each machine, each time.

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
const MODELS: [(&str, Model); 3] = [
    ("fast", Model::FAST),
    ("slow", Model::SLOW),
    ("today", Model::TODAY),
];

/// Takes all and looks at nothing.
struct Null(Arc<Spinning>);

impl Consumer for Null {
    fn found(&self, files: u64, _: u64) {
        println!("      part of {files} at {:.0}", self.0.now() / 1e3);
    }
    fn take(&self, _: &File<'_>, _: Part<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Milliseconds of as many bytes in sequence, in requests of a mebibyte.
fn sequential(model: Model, bytes: u64) -> f64 {
    let mut disk = HardDisk::new(model);
    for at in (0..bytes).step_by(MIB as usize) {
        disk.read(at, MIB.min(bytes - at));
    }
    disk.now() / 1e3
}

/// A run: milliseconds from attaching to its end, and what it did. The disk's clock is the engine's.
fn run(laid: &Laid, model: Model, options: Options) -> (f64, Summary) {
    let device = Arc::new(Spinning::new(laid.device.clone(), HardDisk::new(model)));
    let fs = attach_read_only(laid.format, device.clone(), "").expect("attach");
    let clock = device.clone();
    let options = Options {
        clock: Some(Arc::new(move || clock.elapsed())),
        // On one thread, requests come in one order.
        depth: Some(1),
        ..options
    };
    let source = Source::new(session(fs)).on(device.clone());
    let memory = options.memory;
    let sum = BulkFileRead::new(options)
        .expect("options")
        .run(&[source], &Null(device.clone()));
    assert!(sum.peak <= memory, "{sum:?}");
    (device.now() / 1e3, sum)
}

/// The ordinary walk: milliseconds, files, bytes.
fn walked(laid: &Laid, model: Model) -> (f64, u64, u64) {
    let device = Arc::new(Spinning::new(laid.device.clone(), HardDisk::new(model)));
    let fs = attach_read_only(laid.format, device.clone(), "").expect("attach");
    let (files, bytes) = as_root(|cx| walk(&fs, cx));
    (device.now() / 1e3, files, bytes)
}

#[test]
fn explore() {
    let fat = Shape::new(&FAT, "fat32", 272 * MIB).made("cluster=4k");
    let ffs = Shape::new(&FFS, "ffs2", 256 * MIB).made("block=32k");
    for laid in [
        fresh(fat, 9000),
        aged(fat, 3),
        fresh(ffs, 7000),
        aged(ffs, 3),
    ] {
        let began = std::time::Instant::now();
        for (name, model) in MODELS {
            let (walk, files, bytes) = walked(&laid, model);
            let seq = sequential(model, bytes);
            println!(
                "{} {name}: {files} files, {bytes} bytes, seq {seq:.0} ms, walk {walk:.0} = {:.1}x {:?}",
                laid.name,
                walk / seq,
                began.elapsed()
            );
            for (what, options) in [
                ("daftm", Options::default()),
                (
                    "daftnm",
                    Options {
                        method: Method::DaftNm,
                        ..Options::default()
                    },
                ),
                (
                    "vanilla",
                    Options {
                        method: Method::Vanilla,
                        ..Options::default()
                    },
                ),
            ] {
                let (time, sum) = run(&laid, model, options);
                println!(
                    "   {what}: {time:.0} ms = {:.3}x of seq, walk/it {:.1}  {:.2} extents a file, {} reads {} bytes, {} parts {} cleanings peak {} {:?}",
                    time / seq,
                    walk / time,
                    sum.fragments as f64 / sum.files as f64,
                    sum.reads,
                    sum.read_bytes,
                    sum.parts,
                    sum.cleanings,
                    sum.peak >> 20,
                    began.elapsed()
                );
            }
        }
    }
    let _ = Cleaning::OnDemand;
}

#[test]
fn trace() {
    struct Stop;
    impl Consumer for Stop {
        fn found(&self, _: u64, _: u64) {}
        fn take(&self, _: &File<'_>, _: Part<'_>) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let ffs = Shape::new(&FFS, "ffs2", 256 * MIB);
    let laid = fresh(ffs, 7000);
    let spin = Arc::new(Spinning::new(
        laid.device.clone(),
        HardDisk::new(Model::SLOW),
    ));
    let rec = Arc::new(volary_block::Recorder::new(spin.clone()));
    let fs = attach_read_only(laid.format, rec.clone(), "").expect("attach");
    println!("attached {} {}", spin.now(), rec.take().len());
    let source = Source::new(session(fs)).on(spin.clone());
    BulkFileRead::new(Options {
        depth: Some(1),
        gap: Some(300000),
        request: Some(512 << 10),
        ..Options::default()
    })
    .unwrap()
    .run(&[source], &Stop);
    let all = rec.take();
    println!("walked {} {}", spin.now(), all.len());
    for r in all.iter().take(700) {
        println!("{r:?}");
    }
}

//! How long a run takes on modelled disks, in virtual time: the same on each machine, each time.
//!
//! A disk's time passes with its requests and not otherwise: what the processor does is free here.

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
const FAT32: Shape = Shape::new(&FAT, "fat32", 272 * MIB).made("cluster=4k");
const FFS2: Shape = Shape::new(&FFS, "ffs2", 256 * MIB).made("block=32k");

/// Takes all and looks at nothing.
struct Null;

impl Consumer for Null {
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
    let engine = BulkFileRead::new(options).expect("options");
    let sum = engine.run(&[source], &Null);
    assert!(sum.peak <= memory && sum.failed == 0, "{sum:?}");
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
    for laid in [aged(FAT32, 8), aged(FFS2, 8)] {
        for (name, model) in [("slow", Model::SLOW), ("today", Model::TODAY)] {
            let (_, _, bytes) = walked(&laid, model);
            let seq = sequential(model, bytes);
            let base = run(
                &laid,
                model,
                Options {
                    memory: 4096 * MIB,
                    ..Options::default()
                },
            );
            println!(
                "{} {name} unlimited {:.0} = {:.3}x peak {}",
                laid.name,
                base.0,
                base.0 / seq,
                base.1.peak
            );
            for part in [1, 2, 4, 8] {
                for cleaning in [Cleaning::OnDemand, Cleaning::FirstFit] {
                    let memory = (base.1.peak / part).max(MIB);
                    let (time, sum) = run(
                        &laid,
                        model,
                        Options {
                            memory,
                            cleaning,
                            ..Options::default()
                        },
                    );
                    println!(
                        "  1/{part} {cleaning:?} {:.0} = {:.3} of unlimited, {} parts {} cleanings {} sweeps {} reads {} bytes peak {}",
                        time,
                        time / base.0,
                        sum.parts,
                        sum.cleanings,
                        sum.sweeps,
                        sum.reads,
                        sum.read_bytes,
                        sum.peak
                    );
                }
            }
        }
    }
    let _ = (fresh, Method::DaftNm);
}

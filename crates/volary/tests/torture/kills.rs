//! What processes do that `volary torture kill` kills, without the kill: each
//! script runs to its end, and what was not flushed is lost then.

use std::sync::Arc;
use volary::block::MemDevice;
use volary::torture::{Progress, SIZE_MAX, VOLUMES, Volume, scripts, volume};
use volary::{BlockDevice, Geometry, Result};
use volary_sim::{Losing, Subject};

/// So long that volumes are full for most of it.
const STEPS: usize = 1000;

/// Runs a script on a new volume below `between`, and holds what is left to it.
fn run(
    volume: &Volume,
    seed: u64,
    between: fn(Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice>,
) -> std::result::Result<(), String> {
    let script = scripts::random(seed, STEPS, &volume.preset_tree()?, SIZE_MAX);
    let script = script.with_names(volume.names);
    let mem: Arc<dyn BlockDevice> = Arc::new(MemDevice::from_vec(volume.make()?.to_vec()));
    let mut progress = Progress::default();
    let mut say = |line: &str| assert!(progress.hear(line), "{line}");
    volume.load(
        &script,
        seed,
        between(Arc::new(Losing::new(mem.clone(), seed))),
        &mut say,
    )?;
    assert!(progress.synced(&script) > 10);
    volume.held_to(&script, seed, &progress, None, &mem)?;
    volume.renew(mem)
}

#[test]
fn full_volumes_keep_what_was_synced() {
    for volume in VOLUMES {
        for seed in 0..2 {
            run(volume, seed, |dev| dev)
                .unwrap_or_else(|what| panic!("{} {seed}: {what}", volume.name));
        }
    }
}

/// A write that had no room in the name table had changed what it wrote over.
#[test]
fn a_write_that_had_no_room_changed_nothing() {
    let cedar = volume("cedar").unwrap();
    run(cedar, 54, |dev| dev).unwrap();
}

/// A device whose flushes do nothing.
struct Lying(Arc<dyn BlockDevice>);

impl BlockDevice for Lying {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write_at(offset, data)
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn flushes_that_do_nothing_are_found_out() {
    for name in ["cedar", "fat12", "ffs1"] {
        let lied = |seed| run(volume(name).unwrap(), seed, |dev| Arc::new(Lying(dev))).is_err();
        let found = (1..=8).filter(|seed| lied(*seed)).count();
        println!("{name}: {found} of 8");
        // What such a device loses may be nothing that was still needed.
        assert!(found > 0, "{name}");
    }
}

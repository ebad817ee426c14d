//! The same seed gives the same requests and the same disk. `VOLARY_TORTURE` says how
//! many seeds.

use crate::plans::count;
use std::sync::Arc;
use volary::torture::{SIZE_MAX, VOLUMES, scripts};
use volary_sim::{Event, Subject, Traced};

/// Returns what a script did to a device, in words, and the disk then.
fn run(volume: &volary::torture::Volume, seed: u64) -> (Vec<String>, u64) {
    let disk = volume.make().unwrap();
    let script = scripts::random(seed, 60, &volume.preset_tree().unwrap(), SIZE_MAX);
    let dev = Arc::new(Traced::new(disk).with_reads());
    volume.play(&script, &dev).unwrap();
    let words = |event: &Event| match event {
        Event::Write(sectors) => {
            let bytes = sectors.iter().map(|(n, s)| (n, s.bytes()));
            format!("write {:?}", bytes.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    };
    let hash = dev.disk().hash();
    (dev.take().events.iter().map(words).collect(), hash)
}

#[test]
fn the_same_seed_gives_the_same_requests_and_the_same_disk() {
    for volume in VOLUMES {
        assert_eq!(
            volume.make().unwrap().to_vec(),
            volume.make().unwrap().to_vec()
        );
        for seed in 0..count(3) {
            let (first, again) = (run(volume, seed), run(volume, seed));
            assert!(first == again, "{} {seed}", volume.name);
        }
        assert_ne!(run(volume, 0).1, run(volume, 1).1);
    }
}

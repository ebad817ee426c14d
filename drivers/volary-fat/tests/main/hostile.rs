//! `info`, `dump` and `map` on damaged volumes: no panic, no hang, no answer that
//! grows without bound.

use proptest::prelude::*;
use volary_block::MemDevice;
use volary_core::{BlockDevice, Make, Options};
use volary_fat::dump::dump;
use volary_fat::info::info;
use volary_fat::make::make;
use volary_fat::map::map;
use volary_fat::volume::FatKind;

/// Bytes of the volumes that are damaged.
const LEN: u64 = 2 << 20;

fn volume(kind: FatKind) -> MemDevice {
    let dev = MemDevice::new(LEN);
    let how = Make {
        label: Some("hostile".into()),
        options: Options::parse(match kind {
            FatKind::Fat12 | FatKind::Fat16 => "unix",

            FatKind::Fat32 => "unix,small",
        }),
        ..Make::default()
    };
    make(&dev, kind, &how).unwrap();
    dev
}

/// Runs all that reads, and forgets what it says.
fn look(dev: &MemDevice) {
    let _ = info(dev);
    if let Ok(map) = map(dev, 50) {
        assert!(map.cells.len() <= 50);
    }
    for what in [
        "boot",
        "boot 6",
        "fsinfo",
        "fat 0-100",
        "cluster 3",
        "dir /",
        "dir 3",
        "entry /volary.own",
        "entry /x/y",
        "chain /",
        "chain 3",
        "owners",
    ] {
        let what: Vec<String> = what.split(' ').map(Into::into).collect();
        let mut out = String::new();
        let _ = dump(dev, &what, &mut out);
        assert!(out.len() < 16 << 20, "{what:?} gave {} bytes", out.len());
    }
}

/// Damage: where, counted from the start of an area, and which bytes.
fn damage() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let byte = prop_oneof![
        any::<u8>(),
        Just(0),
        Just(0xff),
        Just(0xe5),
        Just(0x0f),
        Just(0x10),
        2..9_u8
    ];
    // Boot sectors, FSInfo, FATs, root directory, and what comes after it.
    let place = prop_oneof![0..90_u64, 512..1024_u64, 16_384..17_000_u64, 0..100_000_u64];
    let bytes = proptest::collection::vec(byte, 1..64);
    proptest::collection::vec((place, bytes), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn damaged_volumes_are_shown_as_far_as_they_go(
        kind in prop::sample::select(vec![FatKind::Fat12, FatKind::Fat32]),
        damage in damage(),
    ) {
        let dev = volume(kind);
        for (at, bytes) in damage {
            dev.write_at(at, &bytes).unwrap();
        }
        look(&dev);
    }

    #[test]
    fn random_bytes_behind_a_good_boot_sector_are_shown(
        kind in prop::sample::select(vec![FatKind::Fat12, FatKind::Fat32]),
        seed in proptest::collection::vec(any::<u8>(), 4096),
    ) {
        let dev = volume(kind);
        for at in (1024..200_000).step_by(seed.len()) {
            dev.write_at(at, &seed).unwrap();
        }
        look(&dev);
    }
}

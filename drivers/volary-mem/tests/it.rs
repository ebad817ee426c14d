//! The conformance suite on the model, whole and with less and less ability.

use volary_core::{Caps, Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_testkit::Suite;

fn volume(change: impl FnOnce(&mut MemOptions)) -> Fs {
    let mut options = MemOptions::default();
    change(&mut options);
    Mem::attach(options, Time::from_secs(1_000_000_000)).unwrap()
}

#[test]
fn a_volume_with_every_ability_holds_to_its_word() {
    Suite::new("mem", || volume(|_| {})).run();
}

/// What a plain FAT volume can do.
fn as_fat(options: &mut MemOptions) {
    options.caps = Caps {
        bits: Caps::WRITE | Caps::CASE_KEEPING,
        name_max: 255,
        size_max: u64::from(u32::MAX),
        time_step: 2_000_000_000,
    };
    options.atime_step = 86_400_000_000_000;
    options.btime_step = 10_000_000;
}

#[test]
fn a_volume_like_fat_holds_to_its_word() {
    Suite::new("mem like fat", || volume(as_fat)).run();
}

#[test]
fn a_volume_without_one_ability_holds_to_its_word() {
    for bit in [
        Caps::MODES,
        Caps::SYMLINKS,
        Caps::HARD_LINKS,
        Caps::DEVICES,
        Caps::XATTRS,
        Caps::HOLES,
        Caps::PREALLOCATE,
        Caps::CASE_SENSITIVE,
        Caps::SWAP,
        Caps::ANY_NAME,
    ] {
        let name = format!("mem without {bit:#x}");
        Suite::new(name, move || {
            volume(|options| options.caps = options.caps.without(bit))
        })
        .run();
    }
}

#[test]
fn a_small_volume_holds_to_its_word_when_full() {
    Suite::new("small mem", || {
        volume(|options| {
            options.size = 8 << 20;
            options.nodes_max = 4096;
        })
    })
    .run();
}

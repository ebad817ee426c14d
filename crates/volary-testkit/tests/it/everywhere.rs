//! The in-memory driver, everywhere.

use std::sync::Arc;
use volary_core::{Caps, Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_test::{Everywhere, Lack, Within, everywhere, reference};

fn mem() -> Fs {
    Mem::attach(MemOptions::default(), Time::from_secs(1_700_000_000)).expect("memory")
}

#[test]
fn what_takes_changes_holds_everywhere() {
    everywhere("mem", mem);
}

/// Without what SMB and its client do not show.
#[test]
fn what_only_reads_holds_everywhere() {
    let plain = MemOptions::default().caps.without(
        Caps::SYMLINKS
            | Caps::HARD_LINKS
            | Caps::DEVICES
            | Caps::CASE_SENSITIVE
            | Caps::ANY_NAME
            | Caps::MODES,
    );
    let manifest = reference::tree()
        .fitting(&plain)
        .without(Lack::TimesFinerThan(100))
        .without(Lack::Links);
    let held = manifest.clone();
    let make = move || {
        let options = MemOptions {
            caps: plain,
            ..MemOptions::default()
        };
        let fs = Mem::attach(options, Time::from_secs(1_700_000_000)).expect("memory");
        held.fill(&fs).expect("the tree");
        let root = fs.root();
        Arc::new(Within::new(fs, root).only_read()) as Fs
    };
    Everywhere::reading("mem", make, &manifest).run();
}

//! The in-memory driver, everywhere.

use std::sync::Arc;
use volary_core::{Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_test::{Everywhere, Within, everywhere, reference};

fn mem() -> Fs {
    Mem::attach(MemOptions::default(), Time::from_secs(1_700_000_000)).expect("memory")
}

#[test]
fn what_takes_changes_holds_everywhere() {
    everywhere("mem", mem);
}

/// All that the reference tree has, of which SMB is shown a part.
#[test]
fn what_only_reads_holds_everywhere() {
    let manifest = reference::tree().fitting(&MemOptions::default().caps);
    let held = manifest.clone();
    let make = move || {
        let fs = mem();
        held.fill(&fs).expect("the tree");
        let root = fs.root();
        Arc::new(Within::new(fs, root).only_read()) as Fs
    };
    Everywhere::reading("mem", make, &manifest).run();
}

//! Volumes that are right.

use std::sync::{Arc, OnceLock};
use volary_core::{Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_test::{Manifest, Within, reference};

/// Returns an empty volume that takes changes and is small enough to be filled.
pub(crate) fn writer() -> Fs {
    let now = Time::from_secs(1_700_000_000);
    Mem::attach(MemOptions::sized(5 << 20), now).expect("memory")
}

/// Returns what of the reference tree such a volume keeps: all.
pub(crate) fn manifest() -> Manifest {
    reference::tree().fitting(&writer().caps())
}

/// Returns a volume that holds the reference tree and is only read. All are views of one.
pub(crate) fn reader() -> Fs {
    static FILLED: OnceLock<Fs> = OnceLock::new();
    let filled = FILLED.get_or_init(|| {
        let fs = writer();
        manifest().fill(&fs).expect("the reference tree");
        fs
    });
    let fs = Arc::clone(filled);
    let root = fs.root();
    Arc::new(Within::new(fs, root).only_read())
}

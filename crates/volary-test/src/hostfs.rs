//! A mounted directory as a [`FileSystem`](volary_core::FileSystem): the way to run the conformance
//! suite and the differential runner *through* a mount, or on the host's own
//! file systems.
//!
//! Each node that was seen is held by a descriptor, so that it keeps its
//! meaning when names change, as the trait asks. What a mount hides (node
//! generations, change counts, the time of a call) is not to be had: the
//! caller says with [`Caps`] what to expect, and uses
//! [`Suite::own_clock`](crate::Suite::own_clock).
//!
//! Made for tests: it trusts the directory, runs as who runs the test, and
//! keeps descriptors for as long as it lives.

mod attr;
mod entries;
mod errno;
mod fs;
mod probe;
mod table;
mod through;

use crate::Within;
use std::path::Path;
use std::sync::Arc;
use volary_core::{Caps, Fs, Result};

pub use fs::HostFs;
pub use probe::{caps_by_looking, try_out};
pub use through::{excused, shown, through};

/// Returns the directory at `path`, claiming `caps`. Without [`Caps::WRITE`] every change is refused
/// here, so that the directory stays as it is.
///
/// # Errors
/// What the host answers when the directory is opened.
pub fn open(path: &Path, caps: Caps) -> Result<Fs> {
    let fs: Fs = Arc::new(HostFs::new(path, caps)?);
    if caps.has(Caps::WRITE) {
        return Ok(fs);
    }
    let root = fs.root();
    Ok(Arc::new(Within::new(fs, root).only_read()))
}

/// Returns what a file system of the host claims that has all that UNIX has.
pub fn unix_caps() -> Caps {
    Caps {
        bits: Caps::WRITE
            | Caps::MODES
            | Caps::SYMLINKS
            | Caps::HARD_LINKS
            | Caps::DEVICES
            | Caps::HOLES
            | Caps::PREALLOCATE
            | Caps::CASE_SENSITIVE
            | Caps::CASE_KEEPING
            | Caps::SWAP
            | Caps::ANY_NAME,
        name_max: 255,
        size_max: i64::MAX as u64,
        time_step: 1,
    }
}

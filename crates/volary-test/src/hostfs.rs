//! A mounted directory as a [`FileSystem`](volary_core::FileSystem). With it the conformance suite
//! and the differential runner run *through* a mount, or on a file system of the host.
//!
//! A descriptor is kept for each node that was found, so that its id stays valid when names change,
//! as the trait requires. Node generations, change counts and the time of a call do not pass
//! through a mount. The caller therefore states the expected [`Caps`], and uses
//! [`Suite::own_clock`](crate::Suite::own_clock).
//!
//! Only for tests: it trusts the directory, uses the rights of its process, and keeps the
//! descriptors until it is detached.

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

/// Returns the directory at `path` as a file system that claims `caps`. Without [`Caps::WRITE`],
/// every change is refused before it reaches the host.
///
/// # Errors
/// The host's error if the directory cannot be opened.
pub fn open(path: &Path, caps: Caps) -> Result<Fs> {
    let fs: Fs = Arc::new(HostFs::new(path, caps)?);
    if caps.has(Caps::WRITE) {
        return Ok(fs);
    }
    let root = fs.root();
    Ok(Arc::new(Within::new(fs, root).only_read()))
}

/// Returns the caps of a typical UNIX file system of the host.
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

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
mod fs;
mod table;
mod through;

use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use volary_core::{Caps, Error, Fs, Kind, Result};

pub use fs::HostFs;
pub use through::through;

/// The directory at `path`, claiming `caps`.
///
/// # Errors
/// What the host answers when the directory is opened.
pub fn open(path: &Path, caps: Caps) -> Result<Fs> {
    Ok(Arc::new(HostFs::new(path, caps)?))
}

/// What a file system of the host claims that has all that UNIX has.
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

/// The host's answer in our words.
fn from_errno(errno: Errno) -> Error {
    let kind = match errno {
        Errno::NOENT => Kind::NotFound,
        Errno::EXIST => Kind::Exists,
        Errno::NOTDIR => Kind::NotDir,
        Errno::ISDIR => Kind::IsDir,
        Errno::NOTEMPTY => Kind::NotEmpty,
        Errno::INVAL | Errno::ILSEQ => Kind::Invalid,
        Errno::NAMETOOLONG => Kind::NameTooLong,
        Errno::MLINK => Kind::TooManyLinks,
        Errno::LOOP => Kind::SymlinkLoop,
        Errno::FBIG | Errno::OVERFLOW => Kind::TooBig,
        Errno::NOSPC => Kind::NoSpace,
        Errno::DQUOT => Kind::Quota,
        Errno::ROFS => Kind::ReadOnly,
        Errno::ACCESS => Kind::Access,
        Errno::PERM => Kind::NotPermitted,
        Errno::STALE => Kind::Stale,
        Errno::AGAIN => Kind::Locked,
        Errno::DEADLK => Kind::Deadlock,
        Errno::BUSY | Errno::TXTBSY => Kind::Busy,
        Errno::INTR => Kind::Interrupted,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY => Kind::Unsupported,
        Errno::NODATA => Kind::NoXattr,
        Errno::XDEV => Kind::CrossVolume,
        _ => return Error::io("system call", 0, 0, errno.to_string()),
    };
    kind.into()
}

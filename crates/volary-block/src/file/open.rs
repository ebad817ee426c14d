//! Opening and locking a file of the host. Every way in which that can go
//! wrong has a line that says what to do.

use super::OpenOptions;
use super::lock::lock;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use volary_core::{Error, Kind, Result};

/// Opens a regular file or block device as `options` say, and locks it: many
/// may read it, or one may write it. Says whether it is a block device.
///
/// # Errors
/// As [`FileDevice::open`](super::FileDevice::open), but for an empty file.
pub(crate) fn open_locked(path: &Path, options: OpenOptions) -> Result<(File, bool)> {
    let read_only = options.read_only;
    let access = if read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    // NONBLOCK: a fifo without a writer is not waited for, but refused.
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| refused(e, read_only))?;
    let stat = fstat(&file).map_err(|e| refused(e, read_only))?;
    let is_block = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => false,
        FileType::BlockDevice => true,
        FileType::Directory => return Err(refused(Errno::ISDIR, read_only)),
        _ => {
            let words = "neither a file nor a block device; name an image";
            return Err(Error::note(Kind::Unsupported, words));
        }
    };
    let file = File::from(file);
    if !options.unlocked {
        lock(&file, read_only)?;
    }
    Ok((file, is_block))
}

/// Why a file cannot be opened, and what to do.
fn refused(e: Errno, read_only: bool) -> Error {
    let (kind, words) = match e {
        Errno::NOENT => (
            Kind::NotFound,
            "no such image; make one with: volary mkfs --size 64M IMAGE",
        ),
        Errno::NOTDIR => (
            Kind::NotFound,
            "no such image; a part of its path is a file",
        ),
        Errno::ISDIR => (
            Kind::IsDir,
            "is a directory; name an image or a block device",
        ),
        Errno::ACCESS | Errno::PERM if read_only => (
            Kind::Access,
            "no permission to read it; see ls -l, or use sudo",
        ),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => (
            Kind::Access,
            "no permission to write it; see ls -l, or use sudo",
        ),
        Errno::TXTBSY | Errno::BUSY => (Kind::Busy, "in use; unmount it first"),
        e => return Error::note(Kind::Io, std::io::Error::from(e).to_string()),
    };
    Error::note(kind, words)
}

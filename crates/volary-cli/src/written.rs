//! Files of the host that a command writes: archives, pictures, logs, the trail of the layer `audit`.
//!
//! An image that is named here by mistake is refused, and stays as it is.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use svg::Document;

/// Bytes at the start that tell text from images, which have zeros there.
const LOOKED_AT: u64 = 4096;

/// Opens a file to append lines. Makes one that only its owner can read if there is none.
///
/// # Errors
/// The host's; `InvalidInput` for a file that is not text, and for a block device.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    check_text(path)?;
    let mut how = OpenOptions::new();
    how.append(true).create(true).mode(0o600).open(path)
}

/// Writes a picture in place of one that is there, or of another text.
///
/// # Errors
/// As [`open_to_append`] and [`open_to_replace`].
pub(crate) fn replace_picture(path: &Path, picture: &Document) -> io::Result<()> {
    check_text(path)?;
    svg::write(open_to_replace(path)?, picture)
}

/// # Errors
/// `InvalidInput` for a file that is there and not text, and for a block device; the host's.
pub(crate) fn check_text(path: &Path) -> io::Result<()> {
    let refused = |words| Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    if let Ok(meta) = path.metadata() {
        if meta.file_type().is_block_device() {
            return refused("is a block device");
        }
        if meta.is_file() && !is_text(path, &meta)? {
            return refused("is not a text file");
        }
    }
    Ok(())
}

/// Returns whether a file begins with text; true for one that cannot be opened for reading.
fn is_text(path: &Path, meta: &Metadata) -> io::Result<bool> {
    if meta.len() == 0 {
        return Ok(true);
    }
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(true),
        file => file?,
    };
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    Ok(!start.contains(&0))
}

/// Opens a file to overwrite, or makes it. Locks it against being opened as an image meanwhile.
///
/// # Errors
/// The host's; `ResourceBusy` if it is an image in use, or another command writes to it.
pub(crate) fn open_to_replace(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    let file = how.write(true).create(true).truncate(false).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() {
        // Images in use are locked. A file system without locks is no reason to refuse.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN) {
            let words = "is in use, as an image or by another command";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, words));
        }
    }
    if kind.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

//! Opens and locks a file of the host. Every error has a line that says what to do.

use super::OpenOptions;
use super::lock::{claim, lock};
use super::sys::{self, FileType};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use volary_core::{Error, Kind, Result};

/// Opens a regular file or block device as `options` say, and locks it: many processes may read it,
/// or one may write it. What the host has mounted is not opened for writing, nor is a block device
/// that it uses otherwise. Also returns whether it is a block device.
///
/// # Errors
/// As [`FileDevice::open`](super::FileDevice::open), except that an empty file is accepted.
pub(crate) fn open_locked(path: &Path, options: OpenOptions) -> Result<(File, bool)> {
    let read_only = options.read_only;
    let opened = sys::open(path, read_only).and_then(|file| Ok((file.metadata()?, file)));
    let (had, mut file) = opened.map_err(|e| refused(&e, read_only))?;
    let is_block = match sys::kind_of(&had) {
        FileType::Regular => false,
        FileType::BlockDevice => true,
        FileType::Directory => return Err(refused(&ErrorKind::IsADirectory.into(), read_only)),
        FileType::Other => {
            let words = "neither a file nor a block device; name an image";
            return Err(Error::note(Kind::Unsupported, words));
        }
    };
    if !options.unlocked {
        if !read_only {
            refuse_mounted(&file)?;
        }
        if is_block && !read_only {
            file = claim(path, &file)?;
        }
        lock(&file, read_only)?;
    }
    Ok((file, is_block))
}

/// Checks that the host has mounted neither this block device nor an image through a loop device.
///
/// # Errors
/// `Busy`, with the place of the mount.
fn refuse_mounted(file: &File) -> Result<()> {
    match sys::mount_of(file) {
        None => Ok(()),
        Some(place) => {
            let words = format!("mounted at {place}; unmount it first");
            Err(Error::note(Kind::Busy, words))
        }
    }
}

/// Returns the error for a file that cannot be opened, with advice.
fn refused(e: &std::io::Error, read_only: bool) -> Error {
    let (kind, words) = match e.kind() {
        ErrorKind::NotFound => (
            Kind::NotFound,
            "no such image; make one with: volary mkfs --size 64M IMAGE",
        ),
        ErrorKind::NotADirectory => (
            Kind::NotFound,
            "no such image; a part of its path is a file",
        ),
        ErrorKind::IsADirectory => (
            Kind::IsDir,
            "is a directory; name an image or a block device",
        ),
        ErrorKind::PermissionDenied if read_only => (
            Kind::Access,
            "no permission to read it; see ls -l, or use sudo",
        ),
        ErrorKind::PermissionDenied => (
            Kind::Access,
            "no permission to write it; see ls -l, or use sudo",
        ),
        ErrorKind::ReadOnlyFilesystem => (
            Kind::ReadOnly,
            "on a file system that is mounted read-only: it can be read alone",
        ),
        ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy => {
            (Kind::Busy, "in use; unmount it first")
        }
        _ => return Error::note(Kind::Io, e.to_string()),
    };
    Error::note(kind, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_system_without_writes_no_permission_is_asked() {
        let is_read_only = std::io::Error::from(ErrorKind::ReadOnlyFilesystem);
        for error in [
            refused(&is_read_only, false),
            super::super::not_made(&is_read_only),
        ] {
            assert_eq!(error.kind(), Kind::ReadOnly);
            assert!(!error.to_string().contains("permission"), "{error}");
        }
    }
}

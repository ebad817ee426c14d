//! Calls on files that every UNIX has.

use super::FileType;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::fs::{File, Metadata};
use std::io::{IoSlice, Result};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

/// The most parts of one gathered write: the host's `IOV_MAX`.
const PARTS_MAX: usize = 1024;

/// Opens a file without blocking, even a fifo that has no writer.
pub(crate) fn open(path: &Path, read_only: bool) -> Result<File> {
    open_with(
        path,
        match read_only {
            true => OFlags::RDONLY,
            false => OFlags::RDWR,
        },
    )
}

/// Opens a block device for writing. Linux refuses it while the device has another user who wants
/// to be the only one, such as a mount.
pub(crate) fn open_alone(path: &Path) -> Result<File> {
    // Elsewhere, this flag has no meaning for what exists.
    let alone = match cfg!(target_os = "linux") {
        true => OFlags::EXCL,
        false => OFlags::empty(),
    };
    open_with(path, OFlags::RDWR | alone)
}

fn open_with(path: &Path, access: OFlags) -> Result<File> {
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Returns the kind of a file.
pub(crate) fn kind_of(had: &Metadata) -> FileType {
    match had.file_type() {
        kind if kind.is_file() => FileType::Regular,
        kind if kind.is_block_device() => FileType::BlockDevice,
        kind if kind.is_dir() => FileType::Directory,
        _ => FileType::Other,
    }
}

/// Returns the number of names of a file. It is 0 once the file was removed.
pub(crate) fn names(had: &Metadata) -> u64 {
    had.nlink()
}

/// Reads all of `buf` at an offset.
pub(crate) fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(buf, offset)
}

/// Writes all of `data` at an offset.
pub(crate) fn write_all_at(file: &File, data: &[u8], offset: u64) -> Result<()> {
    file.write_all_at(data, offset)
}

/// Writes parts one after the other, in as few calls as the host permits.
pub(crate) fn write_parts(file: &File, parts: &[&[u8]], offset: u64) -> Result<()> {
    let mut at = offset;
    for some in parts.chunks(PARTS_MAX) {
        let mut slices: Vec<IoSlice<'_>> = some.iter().map(|p| IoSlice::new(p)).collect();
        let mut left = slices.as_mut_slice();
        while left.iter().any(|s| !s.is_empty()) {
            let n = retry_on_intr(|| rustix::io::pwritev(file, left, at))?;
            if n == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            at += n as u64;
            IoSlice::advance_slices(&mut left, n);
        }
    }
    Ok(())
}

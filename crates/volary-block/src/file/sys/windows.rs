//! Calls on files of Windows.

use super::FileType;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::windows::fs::FileExt;
use std::path::Path;

/// Opens a file.
pub(crate) fn open(path: &Path, read_only: bool) -> Result<File> {
    File::options().read(true).write(!read_only).open(path)
}

/// Opens a file for writing.
pub(crate) fn open_alone(path: &Path) -> Result<File> {
    open(path, false)
}

/// Returns the kind of a file. Volumes and disks are not files here.
pub(crate) fn kind_of(had: &Metadata) -> FileType {
    match had.file_type() {
        kind if kind.is_file() => FileType::Regular,
        kind if kind.is_dir() => FileType::Directory,
        _ => FileType::Other,
    }
}

/// Returns 1, because the system does not let an open file be removed.
pub(crate) fn names(_: &Metadata) -> u64 {
    1
}

/// Reads all of `buf` at an offset.
pub(crate) fn read_exact_at(file: &File, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
    while !buf.is_empty() {
        match file.seek_read(buf, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buf = buf.get_mut(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(e) if is_interrupted(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes all of `data` at an offset.
pub(crate) fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> Result<()> {
    while !data.is_empty() {
        match file.seek_write(data, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                data = data.get(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(e) if is_interrupted(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn is_interrupted(e: &Error) -> bool {
    e.kind() == ErrorKind::Interrupted
}

/// Writes parts one after the other.
pub(crate) fn write_parts(file: &File, parts: &[&[u8]], offset: u64) -> Result<()> {
    let mut at = offset;
    for part in parts {
        write_all_at(file, part, at)?;
        at += part.len() as u64;
    }
    Ok(())
}

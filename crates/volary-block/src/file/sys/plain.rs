//! What Linux has and others have not, or not alike: it is done without.

use std::fs::File;
use std::io::Result;

/// Bytes of a sector that are taken for granted.
const SECTOR: u32 = 512;

/// Returns how many pages of a range the host has in its page cache: it does not tell.
pub fn cached_pages(_: &File, _: u64, _: u64) -> Option<(u64, u64)> {
    None
}

/// Returns the bytes of a sector of a block device.
pub(crate) fn sector_size(_: &File) -> u32 {
    SECTOR
}

/// Makes a hole in a file: here it cannot.
pub(crate) fn punch(_: &File, _: u64, _: u64) -> Result<bool> {
    Ok(false)
}

/// Tells the host what is read soon: here it takes no hints.
pub(crate) fn will_read(_: &File, _: u64, _: u64) {}

/// Returns a file anew, past the page cache: here it cannot.
pub(crate) fn past_cache(_: &File, _: bool) -> Option<File> {
    None
}

/// Returns the process that holds a lock on a file: it does not tell.
pub(crate) fn holder(_: &File) -> Option<u32> {
    None
}

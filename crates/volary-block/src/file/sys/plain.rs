//! Substitutes for calls that only Linux has, or has in a form that is used here.

use std::fs::File;
use std::io::Result;
use std::ops::Range;
use volary_core::HostFile;

/// The assumed bytes of a sector.
const SECTOR: u32 = 512;

/// Returns `None`, as the host does not tell how many pages are in its page cache.
pub fn cached_pages(_: &File, _: u64, _: u64) -> Option<(u64, u64)> {
    None
}

/// Returns the assumed bytes of a sector.
pub(crate) fn sector_size(_: &File) -> u32 {
    SECTOR
}

/// Returns false, as holes cannot be made here.
pub(crate) fn punch(_: &File, _: u64, _: u64) -> Result<bool> {
    Ok(false)
}

/// Does nothing, as the host takes no hints.
pub(crate) fn will_read(_: &File, _: u64, _: u64) {}

/// Returns `None`, as the page cache cannot be bypassed here.
pub(crate) fn past_cache(_: &File, _: bool) -> Option<File> {
    None
}

/// Returns `None`, as the host does not tell who holds a lock.
pub(crate) fn holder(_: &File) -> Option<u32> {
    None
}

/// Returns `None`, as the host does not tell what it has mounted.
pub(crate) fn mount_of(_: &File) -> Option<String> {
    None
}

/// Returns `None`, as files do not tell of their holes.
pub(crate) fn data_in(_: HostFile<'_>, _: Range<u64>, _: usize) -> Option<Vec<Range<u64>>> {
    None
}

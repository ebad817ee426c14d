//! The bounds check that precedes every request to a device.

use volary_core::{Error, Kind, Result};

/// Returns the end of the range, if it lies within `size` bytes.
///
/// # Errors
/// `Invalid`, naming the range and the size.
pub(crate) fn check_range(offset: u64, len: usize, size: u64) -> Result<u64> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= size => Ok(end),
        _ => Err(Error::note(
            Kind::Invalid,
            format!("{len} bytes at byte {offset} reach past the end of the device, {size} bytes"),
        )),
    }
}

//! A partition, and helpers to read tables.

use crate::Slice;
use std::sync::Arc;
use volary_core::{BlockDevice, Result};

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The PC's table of four entries, with logical partitions in an extended one.
    Mbr,
    /// UEFI's table.
    Gpt,
    /// A BSD disklabel.
    Bsd,
}

/// A range of a device that a partition table describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its id, which follows `#` in a name. `2` is the second partition of an MBR or GPT, and `5`
    /// the first logical one. `a` is the first one of a disklabel, and `2a` the first one of a
    /// disklabel in partition `2`.
    pub id: String,
    /// The first byte.
    pub offset: u64,
    /// The length in bytes, which is not 0.
    pub len: u64,
    /// The kind of table that it is from.
    pub scheme: Scheme,
    /// Its type in the form of the table: `0x0c`, a GUID, or a number.
    pub kind: String,
    /// Its name in a GPT, otherwise empty.
    pub name: String,
}

impl Partition {
    /// Returns the partition as a device.
    ///
    /// # Errors
    /// `Invalid` if it is not on `dev`.
    pub fn open(&self, dev: Arc<dyn BlockDevice>) -> Result<Slice> {
        Slice::new(dev, self.offset, self.len)
    }
}

/// Reads `len` bytes, or fewer at the end of the device.
pub(super) fn read_up_to(dev: &dyn BlockDevice, offset: u64, len: usize) -> Result<Vec<u8>> {
    let left = dev.geometry().size.saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(left).unwrap_or(len).min(len)];
    dev.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Returns the `N` bytes at `at`, if `bytes` is long enough.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the byte range of a run of sectors, if it is not empty and lies on the device.
pub(super) fn stretch(first: u64, count: u64, sector: u64, size: u64) -> Option<(u64, u64)> {
    let offset = first.checked_mul(sector)?;
    let len = count.checked_mul(sector)?;
    let end = offset.checked_add(len)?;
    (len > 0 && end <= size).then_some((offset, len))
}

//! A partition, and how tables are read.

use crate::Slice;
use std::sync::Arc;
use volary_core::{BlockDevice, Result};

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The PC's table of four, with logical partitions in an extended one.
    Mbr,
    /// UEFI's table.
    Gpt,
    /// A BSD disklabel.
    Bsd,
}

/// A stretch of a device that a table names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// What it is called after `#`: `2` is the second of MBR or GPT, `5` the
    /// first logical one, `a` the first of a disklabel, `2a` the first of a
    /// disklabel in the second partition.
    pub id: String,
    /// First byte.
    pub offset: u64,
    /// Length in bytes, not 0.
    pub len: u64,
    /// Which table names it.
    pub scheme: Scheme,
    /// Its type as the table has it: `0x0c`, a GUID, or a number.
    pub kind: String,
    /// The name that GPT gives it; else empty.
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

/// Returns the `N` bytes at `at`, if they are there.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns where a run of sectors lies in bytes, if it is not empty and on the device.
pub(super) fn stretch(first: u64, count: u64, sector: u64, size: u64) -> Option<(u64, u64)> {
    let offset = first.checked_mul(sector)?;
    let len = count.checked_mul(sector)?;
    let end = offset.checked_add(len)?;
    (len > 0 && end <= size).then_some((offset, len))
}

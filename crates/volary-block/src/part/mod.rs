//! Partitions: where they lie, in tables of three kinds.
//!
//! Every byte of a table may be wrong. A partition is listed only if it lies
//! whole on the device; a table that contradicts itself is `Corrupt`; a device
//! without a table has no partitions. GPT counts only under an MBR that says
//! so (type ee), as UEFI asks: else a table left on a disk that was given
//! another use would be found. Sectors are tried at 512 and, for GPT,
//! at 4096 bytes too, since images of disks with such sectors do not say so.

mod bsd;
mod gpt;
mod mbr;

use crate::Slice;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result, escape};

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
    /// The partition as a device.
    ///
    /// # Errors
    /// `Invalid` if it is not on `dev`.
    pub fn open(&self, dev: Arc<dyn BlockDevice>) -> Result<Slice> {
        Slice::new(dev, self.offset, self.len)
    }
}

/// The partitions of `dev`, in the order of the table; those of a disklabel
/// inside a partition follow that partition.
///
/// # Errors
/// `Corrupt` for a table that contradicts itself; `Io`.
pub fn partitions(dev: &dyn BlockDevice) -> Result<Vec<Partition>> {
    let mut outer = mbr::read(dev)?;
    if outer.iter().any(|p| p.kind == mbr::PROTECTIVE) {
        outer = gpt::read(dev)?.unwrap_or(outer);
    }
    if outer.is_empty() {
        let whole = bsd::Place {
            offset: 0,
            len: dev.geometry().size,
            origin: bsd::Origin::Disk,
            prefix: "",
        };
        return bsd::read(dev, &whole);
    }
    let mut all = Vec::new();
    for p in outer {
        let place = bsd::origin(&p.kind).map(|origin| bsd::Place {
            offset: p.offset,
            len: p.len,
            origin,
            prefix: &p.id,
        });
        let inner = place.map(|place| bsd::read(dev, &place)).transpose()?;
        all.push(p);
        all.extend(inner.unwrap_or_default());
    }
    Ok(all)
}

/// The partition of `dev` called `id`.
///
/// # Errors
/// `NotFound`, naming those that there are; those of [`partitions`].
pub fn partition(dev: &dyn BlockDevice, id: &str) -> Result<Partition> {
    let all = partitions(dev)?;
    if let Some(p) = all.iter().find(|p| p.id == id) {
        return Ok(p.clone());
    }
    let id = escape(id.as_bytes());
    let ids: Vec<&str> = all.iter().map(|p| p.id.as_str()).collect();
    let words = match ids.is_empty() {
        true => format!("there is no partition {id}: the device has no partition table"),
        false => format!("there is no partition {id}; there are: {}", ids.join(", ")),
    };
    Err(Error::note(Kind::NotFound, words))
}

/// Reads `len` bytes, or fewer at the end of the device.
fn read_up_to(dev: &dyn BlockDevice, offset: u64, len: usize) -> Result<Vec<u8>> {
    let left = dev.geometry().size.saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(left).unwrap_or(len).min(len)];
    dev.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// The `N` bytes at `at`, if they are there.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Where a run of sectors lies in bytes, if it is not empty and on the device.
fn stretch(first: u64, count: u64, sector: u64, size: u64) -> Option<(u64, u64)> {
    let offset = first.checked_mul(sector)?;
    let len = count.checked_mul(sector)?;
    let end = offset.checked_add(len)?;
    (len > 0 && end <= size).then_some((offset, len))
}

#[cfg(test)]
mod tests;

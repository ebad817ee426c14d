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
mod partition;

pub use partition::{Partition, Scheme};

use volary_core::{BlockDevice, Error, Kind, Result, escape};

/// Returns the partitions of `dev`, in the order of the table; those of a disklabel
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

/// Returns the partition of `dev` called `id`.
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

#[cfg(test)]
mod tests;

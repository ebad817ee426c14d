//! Finds partitions in tables of three kinds.
//!
//! Every byte of a table may be wrong. A partition is listed only if it lies wholly on the device.
//! A table that contradicts itself is `Corrupt`, and a device without a table has no partitions.
//!
//! A GPT is valid only under an MBR that announces it (type ee), as UEFI requires. Otherwise, an
//! old table on a reused disk would be found. A GPT is searched with sectors of 512 and of 4096
//! bytes, because images of disks with such sectors do not tell.

mod bsd;
mod gpt;
mod mbr;
mod partition;

pub use partition::{Partition, Scheme};

use volary_core::{BlockDevice, Error, Kind, Result, escape};

/// Returns the partitions of `dev`, in the order of the table. Those of a disklabel inside a
/// partition follow that partition.
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

/// Returns the partition of `dev` with the id `id`.
///
/// # Errors
/// `NotFound`, naming the existing ones; those of [`partitions`].
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

//! The PC's partition table: four entries at byte 446 of the first sector, and the signature 55 AA
//! at 510.
//!
//! An entry of type 05, 0f or 85 is an extended partition: a chain of sectors of the same form. In
//! each, the first entry is a logical partition, relative to that sector. The second one is the
//! next sector of the chain, relative to the extended partition.

use super::partition::{Partition, Scheme, array, read_up_to, stretch};
use std::collections::BTreeSet;
use volary_core::{BlockDevice, Error, Result};

const SECTOR: u64 = 512;

/// The type of the partition that protects a GPT.
pub(super) const PROTECTIVE: &str = "0xee";

/// The most logical partitions, more than any system supports. The chain ends there.
const LOGICAL_MAX: usize = 128;

/// One of the four entries.
struct Entry {
    active: u8,
    kind: u8,
    first: u32,
    count: u32,
}

impl Entry {
    fn is_used(&self) -> bool {
        self.kind != 0 && self.count != 0
    }
    fn is_extended(&self) -> bool {
        matches!(self.kind, 0x05 | 0x0f | 0x85)
    }
}

/// Returns the partitions, or none if there is no MBR. The boot sector of a FAT volume has the same
/// signature. So a sector with an impossible entry is taken for one.
pub(super) fn read(dev: &dyn BlockDevice) -> Result<Vec<Partition>> {
    let size = dev.geometry().size;
    let Some(entries) = entries(&read_up_to(dev, 0, SECTOR as usize)?) else {
        return Ok(Vec::new());
    };
    let used = || entries.iter().filter(|e| e.is_used());
    let possible =
        |e: &Entry| e.active & 0x7f == 0 && e.first > 0 && u64::from(e.first) * SECTOR < size;
    if !used().all(possible) || overlap(used()) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (i, e) in entries.iter().enumerate().filter(|(_, e)| e.is_used()) {
        if !e.is_extended() {
            found.extend(partition(i + 1, 0, e, size));
        }
    }
    if let Some(extended) = used().find(|e| e.is_extended()) {
        logical(dev, extended, &mut found)?;
    }
    Ok(found)
}

fn overlap<'a>(used: impl Iterator<Item = &'a Entry>) -> bool {
    let mut all: Vec<_> = used
        .map(|e| (e.first, u64::from(e.first) + u64::from(e.count)))
        .collect();
    all.sort_unstable();
    let later = all.iter().skip(1);
    all.iter().zip(later).any(|(a, b)| a.1 > u64::from(b.0))
}

/// Follows the chain of an extended partition. Each sector is read at most once.
fn logical(dev: &dyn BlockDevice, extended: &Entry, found: &mut Vec<Partition>) -> Result<()> {
    let size = dev.geometry().size;
    let base = u64::from(extended.first);
    let end = base + u64::from(extended.count);
    let mut seen = BTreeSet::new();
    let mut at = base;
    for number in 5..5 + LOGICAL_MAX {
        if at * SECTOR >= size {
            return Ok(());
        }
        if !seen.insert(at) || at >= end {
            return Err(Error::corrupt(
                "extended partition",
                at * SECTOR,
                "a link to a sector outside it or met before",
                "a chain of sectors inside it",
            ));
        }
        let Some([entry, link, ..]) = entries(&read_up_to(dev, at * SECTOR, SECTOR as usize)?)
        else {
            return Ok(());
        };
        if entry.is_used() && !entry.is_extended() {
            found.extend(partition(number, at, &entry, size));
        }
        if !link.is_used() || !link.is_extended() {
            return Ok(());
        }
        at = base + u64::from(link.first);
    }
    Ok(())
}

fn partition(number: usize, base: u64, e: &Entry, size: u64) -> Option<Partition> {
    let first = base + u64::from(e.first);
    let mut count = u64::from(e.count);
    if e.kind == 0xee {
        count = count.min((size / SECTOR).checked_sub(first)?);
    }
    let (offset, len) = stretch(first, count, SECTOR, size)?;
    Some(Partition {
        id: number.to_string(),
        offset,
        len,
        scheme: Scheme::Mbr,
        kind: format!("0x{:02x}", e.kind),
        name: String::new(),
    })
}

fn entries(sector: &[u8]) -> Option<[Entry; 4]> {
    if array(sector, 510)? != [0x55, 0xaa] {
        return None;
    }
    let entry = |i: usize| {
        let b: [u8; 16] = array(sector, 446 + 16 * i)?;
        let [active, _, _, _, kind, ..] = b;
        Some(Entry {
            active,
            kind,
            first: u32::from_le_bytes(array(&b, 8)?),
            count: u32::from_le_bytes(array(&b, 12)?),
        })
    };
    Some([entry(0)?, entry(1)?, entry(2)?, entry(3)?])
}

//! The BSD disklabel (4.3BSD-Tahoe to today's BSDs, `sys/disklabel.h`). It is a sector with the
//! magic at its start and at byte 132, a checksum, and 16 bytes for each partition from byte 148
//! on. It is in the first or second sector of the disk, or of the PC partition that holds it, in
//! either byte order.
//!
//! Offsets of partitions are relative to the disk on NetBSD, OpenBSD and FreeBSD up to 4. They are
//! relative to the PC partition on later FreeBSDs. On FreeBSD, partition `c` is the whole PC
//! partition, so its offset tells which of the two applies.

use super::partition::{Partition, Scheme, array, read_up_to, stretch};
use volary_core::{BlockDevice, Error, Result};

const MAGIC: u32 = 0x8256_4557;
const PARTITIONS_MAX: u16 = 22;
const HEADER_LEN: usize = 148;
const ENTRY_LEN: usize = 16;

/// Bytes 0, 64 and 512 of the disk, where the ports of BSD put the label.
const PLACES: [usize; 3] = [512, 0, 64];

/// What the offsets in a label are relative to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Disk,
    /// The disk, if partition `c` begins where the PC partition does. Otherwise, the PC partition.
    AsPartitionC,
}

/// Returns what offsets are relative to in a disklabel inside a partition of this type. Returns
/// `None` if the type can hold none. Those that can are the MBR types of FreeBSD, OpenBSD and
/// NetBSD, and FreeBSD's GPT type.
pub(super) fn origin(kind: &str) -> Option<Origin> {
    match kind {
        "0xa5" | "516E7CB4-6ECF-11D6-8FF8-00022D09712B" => Some(Origin::AsPartitionC),
        "0xa6" | "0xa9" => Some(Origin::Disk),
        _ => None,
    }
}

/// Where to search for a label, and how to read it.
pub(super) struct Place<'a> {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) origin: Origin,
    /// The prefix of its partitions' letters.
    pub(super) prefix: &'a str,
}

/// A label with its byte order.
struct Label<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl Label<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let b = array(self.bytes, at)?;
        Some(if self.big {
            u16::from_be_bytes(b)
        } else {
            u16::from_le_bytes(b)
        })
    }
    fn u32(&self, at: usize) -> Option<u32> {
        let b = array(self.bytes, at)?;
        Some(if self.big {
            u32::from_be_bytes(b)
        } else {
            u32::from_le_bytes(b)
        })
    }

    /// Returns the exclusive or of all 16-bit words, which is 0 for a valid label.
    fn sum(&self, len: usize) -> Option<u16> {
        (0..len / 2).try_fold(0, |sum, i| Some(sum ^ self.u16(2 * i)?))
    }
}

/// Returns the partitions in the label at this place. Returns none if there is no label.
///
/// # Errors
/// `Corrupt` for a label with a wrong checksum or count; `Io`.
pub(super) fn read(dev: &dyn BlockDevice, place: &Place<'_>) -> Result<Vec<Partition>> {
    let len = usize::try_from(place.len).unwrap_or(usize::MAX);
    let bytes = read_up_to(dev, place.offset, len.min(2048))?;
    for within in PLACES {
        let rest = bytes.get(within..).unwrap_or_default();
        for big in [false, true] {
            let label = Label { bytes: rest, big };
            if label.u32(0) == Some(MAGIC) && label.u32(132) == Some(MAGIC) {
                return list(
                    &label,
                    dev.geometry().size,
                    place,
                    place.offset + within as u64,
                );
            }
        }
    }
    Ok(Vec::new())
}

fn list(label: &Label<'_>, size: u64, place: &Place<'_>, at: u64) -> Result<Vec<Partition>> {
    let count = label.u16(138).unwrap_or(0);
    if count == 0 || count > PARTITIONS_MAX {
        return Err(Error::corrupt(
            "d_npartitions",
            at + 138,
            count.to_string(),
            "1 to 22",
        ));
    }
    let sum = label.sum(HEADER_LEN + ENTRY_LEN * usize::from(count));
    if sum != Some(0) {
        return Err(Error::corrupt(
            "d_checksum",
            at + 136,
            "a wrong sum",
            "the sum of the label",
        ));
    }
    let sector = u64::from(label.u32(40).unwrap_or(0));
    if !(512..=4096).contains(&sector) || !sector.is_power_of_two() {
        return Err(Error::corrupt(
            "d_secsize",
            at + 40,
            sector.to_string(),
            "512 to 4096",
        ));
    }
    let whole = u64::from(entry(label, 2).map_or(0, |e| e.first));
    let from_disk = place.origin == Origin::Disk || whole * sector == place.offset;
    let base = if from_disk { 0 } else { place.offset };
    let found = (0..usize::from(count)).filter_map(|i| {
        let e = entry(label, i).filter(|e| e.kind != 0)?;
        let (start, len) = stretch(e.first.into(), e.count.into(), sector, size)?;
        let end = base.checked_add(start)?.checked_add(len)?;
        let letter = char::from(b'a' + i as u8);
        (end <= size && i != 2).then(|| Partition {
            id: format!("{}{letter}", place.prefix),
            offset: base + start,
            len,
            scheme: Scheme::Bsd,
            kind: e.kind.to_string(),
            name: String::new(),
        })
    });
    Ok(found.collect())
}

struct Entry {
    count: u32,
    first: u32,
    kind: u8,
}

fn entry(label: &Label<'_>, i: usize) -> Option<Entry> {
    let at = HEADER_LEN + ENTRY_LEN * i;
    Some(Entry {
        count: label.u32(at)?,
        first: label.u32(at + 4)?,
        kind: *label.bytes.get(at + 12)?,
    })
}

//! UEFI's partition table (UEFI 2.10, chapter 5): a header in the second sector, and a copy in the
//! last one. Each has a checksum over itself, and one over its array of entries.

use super::partition::{Partition, Scheme, array, read_up_to, stretch};
use volary_core::{BlockDevice, Error, Result};

const SIGNATURE: [u8; 8] = *b"EFI PART";
const HEADER_LEN: usize = 92;

/// Bounds on the array of entries. All known tables have 128 of 128 bytes.
const ENTRIES_MAX: u32 = 1024;
const ENTRY_LEN_MAX: u32 = 1024;

/// The fields of a header with a valid checksum.
struct Header {
    /// Its offset on the device, in bytes.
    offset: u64,
    sector: u64,
    first_usable: u64,
    last_usable: u64,
    /// The first sector of the entries.
    entries: u64,
    entry_count: u32,
    entry_len: u32,
    entries_crc: u32,
}

/// Returns the partitions, or `None` if there is no GPT.
///
/// # Errors
/// `Corrupt` if there are headers, but none of them is valid; `Io`.
pub(super) fn read(dev: &dyn BlockDevice) -> Result<Option<Vec<Partition>>> {
    let size = dev.geometry().size;
    let mut wrong = None;
    for sector in [512, 4096] {
        for offset in [sector, (size / sector).saturating_sub(1) * sector] {
            match read_at(dev, offset, sector) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(e) => wrong = wrong.or(Some(e)),
            }
        }
    }
    wrong.map_or(Ok(None), Err)
}

fn read_at(dev: &dyn BlockDevice, offset: u64, sector: u64) -> Result<Option<Vec<Partition>>> {
    let bytes = read_up_to(dev, offset, sector as usize)?;
    if array(&bytes, 0) != Some(SIGNATURE) {
        return Ok(None);
    }
    let header = header(&bytes, offset, sector)?;
    let all = header.entry_count as usize * header.entry_len as usize;
    let at = stretch(header.entries, 1, sector, dev.geometry().size).map_or(0, |s| s.0);
    let table = read_up_to(dev, at, all)?;
    let crc = crc32(&table);
    if at == 0 || table.len() != all || crc != header.entries_crc {
        return Err(corrupt(
            "PartitionEntryArrayCRC32",
            &header,
            crc,
            header.entries_crc,
        ));
    }
    let size = dev.geometry().size;
    let entries = table.chunks(header.entry_len as usize).enumerate();
    Ok(Some(
        entries
            .filter_map(|(i, e)| partition(i, e, &header, size))
            .collect(),
    ))
}

fn corrupt(what: &'static str, h: &Header, found: u32, expected: u32) -> Error {
    Error::corrupt(
        what,
        h.offset,
        format!("{found:#010x}"),
        format!("{expected:#010x}"),
    )
}

/// Checks a header that has the signature.
fn header(bytes: &[u8], offset: u64, sector: u64) -> Result<Header> {
    let u32_at = |at| array(bytes, at).map_or(0, u32::from_le_bytes);
    let u64_at = |at| array(bytes, at).map_or(0, u64::from_le_bytes);
    let h = Header {
        offset,
        sector,
        first_usable: u64_at(40),
        last_usable: u64_at(48),
        entries: u64_at(72),
        entry_count: u32_at(80),
        entry_len: u32_at(84),
        entries_crc: u32_at(88),
    };
    let len = u32_at(12) as usize;
    let Some(covered) = bytes.get(..len).filter(|_| len >= HEADER_LEN) else {
        return Err(corrupt("HeaderSize", &h, len as u32, HEADER_LEN as u32));
    };
    let mut covered = covered.to_vec();
    if let Some(field) = covered.get_mut(16..20) {
        field.fill(0);
    }
    let crc = crc32(&covered);
    if crc != u32_at(16) {
        return Err(corrupt("HeaderCRC32", &h, u32_at(16), crc));
    }
    if u64_at(24) != offset / sector {
        return Err(corrupt(
            "MyLBA",
            &h,
            u64_at(24) as u32,
            (offset / sector) as u32,
        ));
    }
    if h.entry_count > ENTRIES_MAX {
        return Err(corrupt(
            "NumberOfPartitionEntries",
            &h,
            h.entry_count,
            ENTRIES_MAX,
        ));
    }
    if !(128..=ENTRY_LEN_MAX).contains(&h.entry_len) {
        return Err(corrupt("SizeOfPartitionEntry", &h, h.entry_len, 128));
    }
    Ok(h)
}

/// Returns the partition of an entry, unless it is unused or not in the usable range.
fn partition(index: usize, bytes: &[u8], h: &Header, size: u64) -> Option<Partition> {
    let kind: [u8; 16] = array(bytes, 0)?;
    let first = u64::from_le_bytes(array(bytes, 32)?);
    let last = u64::from_le_bytes(array(bytes, 40)?);
    let usable = first >= h.first_usable && last <= h.last_usable && first <= last;
    if kind == [0; 16] || !usable {
        return None;
    }
    let (offset, len) = stretch(first, (last - first).checked_add(1)?, h.sector, size)?;
    Some(Partition {
        id: (index + 1).to_string(),
        offset,
        len,
        scheme: Scheme::Gpt,
        kind: guid(kind),
        name: name(bytes.get(56..128)?),
    })
}

/// Formats a GUID. Its first three fields are little-endian, and the rest is not.
fn guid(b: [u8; 16]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::new();
    for (i, at) in ORDER.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{:02X}", b.get(at).copied().unwrap_or(0));
    }
    text
}

fn name(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|c| array(c, 0).map_or(0, u16::from_le_bytes));
    char::decode_utf16(units.take_while(|&u| u != 0))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Returns the CRC-32 of ISO 3309, with the reflected polynomial 04C11DB7.
fn crc32(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, b: &u8| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| {
            (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, byte)
}

//! The header of a qcow2 image (QEMU's docs/interop/qcow2.txt), as far as it
//! must be right before the image is opened.

use volary_core::{Error, Kind, Result, escape};

/// The first bytes of every qcow2 image.
pub(super) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// Length of the header of version 3 without its extensions; that of version 2
/// is a part of it.
pub(super) const HEADER_LEN: usize = 104;

/// The largest cluster that QEMU takes, as a power of two.
const CLUSTER_BITS_MAX: u32 = 21;

/// An image whose content is in another file.
const EXTERNAL_DATA: u64 = 1 << 2;

/// Where the name of the image below stands, if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// Checks the header of an image of `file_len` bytes: its tables must lie in
/// the file, so that no memory is asked for that the file does not have. Gives
/// what it stands on.
///
/// # Errors
/// `Corrupt`, naming the field; `Unsupported` for encryption and other files.
pub(super) fn check(bytes: &[u8], file_len: u64) -> Result<Option<Backing>> {
    let u32_at = |at: usize| field(bytes, at).map_or(0, u32::from_be_bytes);
    let u64_at = |at: usize| field(bytes, at).map_or(0, u64::from_be_bytes);
    if field(bytes, 0) != Some(MAGIC) || bytes.len() < HEADER_LEN {
        let found = escape(bytes.get(..4).unwrap_or_default()).to_string();
        return Err(Error::corrupt("magic", 0, found, "QFI\\xfb"));
    }
    let version = u32_at(4);
    if !matches!(version, 2 | 3) {
        let words = format!("a qcow2 image of version {version}; volary opens 2 and 3");
        return Err(Error::note(Kind::Unsupported, words));
    }
    let bits = u32_at(20);
    if !(9..=CLUSTER_BITS_MAX).contains(&bits) {
        return Err(Error::corrupt(
            "cluster_bits",
            20,
            bits.to_string(),
            "9 to 21",
        ));
    }
    let size = u64_at(24);
    if size == 0 || size > i64::MAX as u64 {
        return Err(Error::corrupt(
            "size",
            24,
            size.to_string(),
            "1 to 2^63 - 1",
        ));
    }
    if u32_at(32) != 0 {
        return Err(Error::note(
            Kind::Unsupported,
            "an encrypted qcow2 image; decrypt it first",
        ));
    }
    let table = |what, at, offset: u64, len: u64| match offset.checked_add(len) {
        Some(end) if end <= file_len => Ok(()),
        _ => {
            let found = format!("{len} bytes at byte {offset}");
            Err(Error::corrupt(
                what,
                at,
                found,
                format!("inside the file of {file_len} bytes"),
            ))
        }
    };
    table("l1_size", 36, u64_at(40), u64::from(u32_at(36)) * 8)?;
    table(
        "refcount_table_clusters",
        56,
        u64_at(48),
        u64::from(u32_at(56)) << bits,
    )?;
    if version == 3 && u64_at(72) & EXTERNAL_DATA != 0 {
        let words =
            "a qcow2 image with its content in another file; convert it with: qemu-img convert";
        return Err(Error::note(Kind::Unsupported, words));
    }
    let backing = Backing {
        offset: u64_at(8),
        len: u32_at(16) as usize,
    };
    if backing.offset == 0 {
        return Ok(None);
    }
    if backing.len > 1023 {
        return Err(Error::corrupt(
            "backing_file_size",
            16,
            backing.len.to_string(),
            "up to 1023",
        ));
    }
    table("backing_file_offset", 8, backing.offset, backing.len as u64)?;
    Ok(Some(backing))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

//! Checks the header of a qcow2 image (QEMU's docs/interop/qcow2.txt), as far as necessary before
//! the image is opened.

use crate::magic::{HEADER_LEN, MAGIC};
use volary_core::{Error, Kind, Result, escape};

/// The largest cluster that QEMU supports, as a power of two.
const CLUSTER_BITS_MAX: u32 = 21;

/// An image whose content is in another file.
const EXTERNAL_DATA: u64 = 1 << 2;

/// Where the name of the backing file is in the header, if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// The tables of an image. [`check`] has verified that they lie inside the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    /// The size of a cluster, as a power of two.
    pub(super) cluster_bits: u32,
    /// Bits of a refcount: a power of two, 1 to 64.
    pub(super) count_bits: u32,
    /// Offset and length of the refcount table, in bytes.
    pub(super) refcounts: (u64, u64),
    /// Offset and length of the L1 table, in bytes.
    pub(super) l1: (u64, u64),
}

/// Returns whether the refcounts of a header that [`check`] has accepted are up to date. They are not
/// after a crash, if QEMU has put off writing them.
pub(super) fn counts(bytes: &[u8]) -> bool {
    const DIRTY: u64 = 1;
    let header = Header { bytes, file_len: 0 };
    header.u32(4) == 2 || header.u64(72) & DIRTY == 0
}

/// Returns the tables of a header that [`check`] has accepted.
///
/// # Errors
/// `Corrupt` for refcounts wider than 64 bits.
pub(super) fn tables(bytes: &[u8]) -> Result<Tables> {
    let header = Header { bytes, file_len: 0 };
    let order = match header.u32(4) {
        // Version 2 always has 16-bit refcounts.
        2 => 4,
        _ => header.u32(96),
    };
    if order > 6 {
        return Err(Error::corrupt(
            "refcount_order",
            96,
            order.to_string(),
            "0 to 6",
        ));
    }
    let bits = header.u32(20);
    Ok(Tables {
        cluster_bits: bits,
        count_bits: 1 << order,
        refcounts: (header.u64(48), u64::from(header.u32(56)) << bits),
        l1: (header.u64(40), u64::from(header.u32(36)) * 8),
    })
}

/// The bytes of a header, with big-endian numbers.
struct Header<'a> {
    bytes: &'a [u8],
    file_len: u64,
}

/// Returns how many bytes the image holds, or `None` if this is not a qcow2 header.
pub(super) fn size(bytes: &[u8]) -> Option<u64> {
    let is_one = field(bytes, 0) == Some(MAGIC);
    field(bytes, 24).map(u64::from_be_bytes).filter(|_| is_one)
}

/// Checks the header of an image of `file_len` bytes. Its tables must lie in the file, so that no
/// more memory is allocated than the file has bytes. Returns its backing file, if it has one.
///
/// # Errors
/// `Corrupt`, naming the field; `Unsupported` for encryption, and for content in another file.
pub(super) fn check(bytes: &[u8], file_len: u64) -> Result<Option<Backing>> {
    if field(bytes, 0) != Some(MAGIC) || bytes.len() < HEADER_LEN {
        let found = escape(bytes.get(..4).unwrap_or_default()).to_string();
        return Err(Error::corrupt("magic", 0, found, "QFI\\xfb"));
    }
    let header = Header { bytes, file_len };
    header.check_kind()?;
    let bits = header.u32(20);
    if !(9..=CLUSTER_BITS_MAX).contains(&bits) {
        return Err(Error::corrupt(
            "cluster_bits",
            20,
            bits.to_string(),
            "9 to 21",
        ));
    }
    let size = header.u64(24);
    if size == 0 || size > i64::MAX as u64 {
        return Err(Error::corrupt(
            "size",
            24,
            size.to_string(),
            "1 to 2^63 - 1",
        ));
    }
    header.check_l1(size, bits)?;
    let refcounts = u64::from(header.u32(56)) << bits;
    header.check_table("refcount_table_clusters", 56, header.u64(48), refcounts)?;
    header.backing()
}

impl Header<'_> {
    fn u32(&self, at: usize) -> u32 {
        field(self.bytes, at).map_or(0, u32::from_be_bytes)
    }
    fn u64(&self, at: usize) -> u64 {
        field(self.bytes, at).map_or(0, u64::from_be_bytes)
    }

    /// Refuses versions, encryption and content in another file.
    fn check_kind(&self) -> Result<()> {
        let version = self.u32(4);
        let words = match version {
            2 | 3 if self.u32(32) != 0 => "an encrypted qcow2 image; decrypt it first",
            3 if self.u64(72) & EXTERNAL_DATA != 0 => {
                "a qcow2 image with its content in another file; convert it with: qemu-img convert"
            }
            2 | 3 => return Ok(()),
            _ => "a qcow2 image of a version that is not known; volary opens 2 and 3",
        };
        Err(Error::note(Kind::Unsupported, words))
    }

    /// Checks that a table lies in the file. Its length comes from the field at `at`.
    fn check_table(&self, what: &'static str, at: u64, offset: u64, len: u64) -> Result<()> {
        if offset
            .checked_add(len)
            .is_some_and(|end| end <= self.file_len)
        {
            return Ok(());
        }
        let found = format!("{len} bytes at byte {offset}");
        let expected = format!("inside the file of {} bytes", self.file_len);
        Err(Error::corrupt(what, at, found, expected))
    }

    /// Checks that the L1 table lies in the file, and covers the whole size, as QEMU does. At the
    /// next write, imago would enlarge a table that is too small to whatever the size claims.
    fn check_l1(&self, size: u64, bits: u32) -> Result<()> {
        let entries = u64::from(self.u32(36));
        self.check_table("l1_size", 36, self.u64(40), entries * 8)?;
        // An L1 entry refers to a cluster of 8-byte L2 entries, and an L2 entry to a cluster.
        let needed = size.div_ceil(1 << (2 * bits - 3));
        if entries >= needed {
            return Ok(());
        }
        let expected = format!("at least {needed} for {size} bytes");
        Err(Error::corrupt("l1_size", 36, entries.to_string(), expected))
    }

    fn backing(&self) -> Result<Option<Backing>> {
        let backing = Backing {
            offset: self.u64(8),
            len: self.u32(16) as usize,
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
        self.check_table("backing_file_offset", 8, backing.offset, backing.len as u64)?;
        Ok(Some(backing))
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

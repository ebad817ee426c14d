//! Identifies the content of a device by its magic: a volume that can be opened, or something else
//! that is known.

use crate::block::{Skipping, Zeros};
use crate::formats::Formats;
use volary_core::{BlockDevice, Format, Probe, Result, is_zero};

/// What a device was found to hold.
pub enum Identity {
    /// A volume of a format that volary has.
    Volume(&'static dyn Format, Probe),
    /// Something else, known by its magic: `an ext4 file system`.
    Foreign(&'static str),
    /// A partition table: `an MBR partition table`.
    Partitions(&'static str),
    /// Zeros. Of a large device so many bytes were read, all over it; `None` if all of it was.
    Blank(Option<u64>),
    /// Zeros where a volume is recognised, and something from this byte on.
    Headless(u64),
    /// Nothing known.
    Unknown,
}

impl Identity {
    /// Returns the identity in a few words: `a fat16 volume`.
    pub fn words(&self) -> String {
        match self {
            Self::Volume(_, probe) => format!("a {} volume", probe.kind),
            Self::Foreign(words) | Self::Partitions(words) => (*words).into(),
            Self::Blank(None) => "nothing but zeros".into(),
            Self::Blank(Some(read)) => {
                format!("nothing but zeros in the {read} bytes that were read")
            }
            Self::Headless(at) => format!("something at byte {at}, after zeros"),
            Self::Unknown => "nothing that is known".into(),
        }
    }
}

impl Formats {
    /// # Errors
    /// As [`Registry::identify`](crate::Registry::identify).
    pub(crate) fn identify(&self, dev: &dyn BlockDevice) -> Result<Identity> {
        let readable = Skipping::new(dev);
        let identity = self.look(&readable)?;
        match (&identity, readable.take_failure()) {
            (Identity::Blank(_) | Identity::Unknown, Some(e)) => Err(e),
            _ => Ok(identity),
        }
    }

    /// Identifies a device whose unreadable parts read as something else.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn look(&self, dev: &Skipping<'_>) -> Result<Identity> {
        for format in self.all() {
            if let Some(probe) = format.probe(dev)? {
                return Ok(Identity::Volume(*format, probe));
            }
        }
        let size = dev.geometry().size;
        let mut head = vec![0; usize::try_from(size).unwrap_or(LOOK).min(LOOK)];
        dev.read_at(0, &mut head)?;
        if !is_zero(&head) {
            return Ok(name(&Head(&head)));
        }
        Ok(match Zeros::on(dev)? {
            Zeros::All => Identity::Blank(None),
            Zeros::Sampled(read) => Identity::Blank(Some(read)),
            Zeros::Until(at) => Identity::Headless(at),
        })
    }
}

/// How many bytes of a device are examined: up to the superblock of UFS2 in its last possible
/// place.
pub const LOOK: usize = 264 << 10;

fn name(head: &Head<'_>) -> Identity {
    if let Some(words) = extended(head)
        .or_else(|| by_magic(head))
        .or_else(|| ufs(head))
    {
        return Identity::Foreign(words);
    }
    if let Some(words) = partition_table(head) {
        return Identity::Partitions(words);
    }
    Identity::Unknown
}

/// The bytes to examine. Reading past them returns `None`.
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn has(&self, at: usize, magic: &[u8]) -> bool {
        self.0.get(at..at.saturating_add(magic.len())) == Some(magic)
    }
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.saturating_add(N))?.try_into().ok()
    }
    fn le32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }
}

/// Offset in bytes, magic, and name. The first match counts.
const MAGICS: &[(usize, &[u8], &str)] = &[
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (3, b"ReFS\0\0\0\0", "a ReFS file system"),
    (3, b"-FVE-FS-", "a BitLocker volume"),
    (0, b"XFSB", "an XFS file system"),
    (0x1_0040, b"_BHRfS_M", "a Btrfs file system"),
    (0x1_0034, b"ReIsErFs", "a ReiserFS file system"),
    (0x1_0034, b"ReIsEr2Fs", "a ReiserFS file system"),
    (0x8000, b"JFS1", "a JFS file system"),
    (1024, &[0x10, 0x20, 0xf5, 0xf2], "an F2FS file system"),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0], "an EROFS file system"),
    (1024, b"H+", "an HFS+ file system"),
    (1024, b"HX", "an HFS+ file system"),
    (1024, b"BD", "an HFS file system"),
    (32, b"NXSB", "an APFS container"),
    (0, b"hsqs", "a squashfs image"),
    (0, &[0x45, 0x3d, 0xcd, 0x28], "a cramfs image"),
    (0, b"-rom1fs-", "a romfs image"),
    (0x8001, b"CD001", "an ISO 9660 image"),
    (0x8001, b"BEA01", "a UDF file system"),
    (4086, b"SWAPSPACE2", "Linux swap space"),
    (4086, b"SWAP-SPACE", "Linux swap space"),
    (0, b"LUKS\xba\xbe", "a LUKS encrypted volume"),
    (0, b"LABELONE", "an LVM physical volume"),
    (512, b"LABELONE", "an LVM physical volume"),
    (1024, b"LABELONE", "an LVM physical volume"),
    (1536, b"LABELONE", "an LVM physical volume"),
    (
        4096,
        &[0xfc, 0x4e, 0x2b, 0xa9],
        "a member of a Linux software RAID",
    ),
    (0, &[0x1f, 0x8b], "a gzip file; decompress it first"),
    (0, b"\xfd7zXZ\0", "an xz file; decompress it first"),
    (
        0,
        &[0x28, 0xb5, 0x2f, 0xfd],
        "a zstd file; decompress it first",
    ),
    (0, b"BZh", "a bzip2 file; decompress it first"),
    (
        0,
        &[0x04, 0x22, 0x4d, 0x18],
        "an lz4 file; decompress it first",
    ),
    (0, b"PK\x03\x04", "a zip archive; unpack it first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (257, b"ustar", "a tar archive; unpack it first"),
    (
        0,
        b"KDMV",
        "a VMDK image; convert it first: qemu-img convert -O raw",
    ),
    (
        0,
        b"vhdxfile",
        "a VHDX image; convert it first: qemu-img convert -O raw",
    ),
    (
        0,
        b"conectix",
        "a VHD image; convert it first: qemu-img convert -O raw",
    ),
    (
        0x40,
        &[0x7f, 0x10, 0xda, 0xbe],
        "a VDI image; convert it first: qemu-img convert -O raw",
    ),
    (0, b"\x7fELF", "an ELF program"),
];

fn by_magic(head: &Head<'_>) -> Option<&'static str> {
    let found = MAGICS.iter().find(|(at, magic, _)| head.has(*at, magic))?;
    let is_bridge = found.1 == b"CD001" && (0x8800..LOOK).step_by(0x800).any(|at| is_nsr(head, at));
    Some(if is_bridge {
        "a UDF file system with an ISO 9660 bridge"
    } else {
        found.2
    })
}

fn is_nsr(head: &Head<'_>, at: usize) -> bool {
    head.has(at + 1, b"NSR02") || head.has(at + 1, b"NSR03")
}

/// Tells ext2, 3 and 4 apart by their features, as they share one magic.
fn extended(head: &Head<'_>) -> Option<&'static str> {
    if !head.has(0x438, &[0x53, 0xef]) {
        return None;
    }
    let (compat, incompat) = (head.le32(0x45c)?, head.le32(0x460)?);
    const HAS_JOURNAL: u32 = 0x4;
    const EXTENTS_64BIT_FLEXBG: u32 = 0x40 | 0x80 | 0x200;
    Some(if incompat & EXTENTS_64BIT_FLEXBG != 0 {
        "an ext4 file system"
    } else if compat & HAS_JOURNAL != 0 {
        "an ext3 file system"
    } else {
        "an ext2 file system"
    })
}

/// Recognises UFS by its magic at byte 1372 of a superblock, in four possible places and either
/// byte order.
fn ufs(head: &Head<'_>) -> Option<&'static str> {
    const FS_MAGIC: usize = 1372;
    [8 << 10, 0, 64 << 10, 256 << 10]
        .into_iter()
        .find_map(|at| {
            let magic = head.le32(at + FS_MAGIC)?;
            match (magic, magic.swap_bytes()) {
                (0x0001_1954, _) | (_, 0x0001_1954) => Some("a UFS1 (FFS) file system"),
                (0x1954_0119, _) | (_, 0x1954_0119) => Some("a UFS2 file system"),
                _ => None,
            }
        })
}

/// The name of a BSD disklabel.
pub(crate) const DISKLABEL: &str = "a BSD disklabel";

fn partition_table(head: &Head<'_>) -> Option<&'static str> {
    if head.has(512, b"EFI PART") || head.has(4096, b"EFI PART") {
        return Some("a GPT partition table");
    }
    if head.has(512, &[0x57, 0x45, 0x56, 0x82]) {
        return Some(DISKLABEL);
    }
    let entries = head.0.get(446..510)?.chunks_exact(16);
    let is_entry = |e: &[u8]| matches!(e.first(), Some(0 | 0x80)) && e.get(4) != Some(&0);
    let is_free = |e: &[u8]| e.iter().all(|&b| b == 0);
    let signed = head.has(510, &[0x55, 0xaa]);
    let (used, odd) = entries.fold((0, 0), |(used, odd), e| match (is_entry(e), is_free(e)) {
        (true, _) => (used + 1, odd),
        (_, true) => (used, odd),
        _ => (used, odd + 1),
    });
    (signed && used > 0 && odd == 0).then_some("an MBR partition table")
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;

    fn holding(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; LOOK];
        for (at, bytes) in parts {
            head[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        head
    }

    fn words(head: &[u8]) -> String {
        name(&Head(head)).words()
    }

    #[test]
    fn each_magic_is_told_by_itself() {
        for (at, magic, expected) in MAGICS {
            assert_eq!(words(&holding(&[(*at, magic)])), *expected);
        }
    }

    #[test]
    fn the_three_extended_systems_are_told_apart_by_their_features() {
        let magic: &[u8] = &[0x53, 0xef];
        for (compat, incompat, expected) in [
            (0, 0, "an ext2 file system"),
            (4, 0, "an ext3 file system"),
            (4, 0x40, "an ext4 file system"),
        ] {
            let head = holding(&[(0x438, magic), (0x45c, &[compat]), (0x460, &[incompat])]);
            assert_eq!(words(&head), expected);
        }
    }

    #[test]
    fn ufs_is_found_in_both_byte_orders_and_each_place() {
        for at in [0, 8 << 10, 64 << 10, 256 << 10] {
            for magic in [0x0001_1954_u32.to_le_bytes(), 0x0001_1954_u32.to_be_bytes()] {
                let head = holding(&[(at + 1372, &magic)]);
                assert_eq!(words(&head), "a UFS1 (FFS) file system", "at {at}");
            }
        }
        let head = holding(&[((64 << 10) + 1372, &0x1954_0119_u32.to_le_bytes())]);
        assert_eq!(words(&head), "a UFS2 file system");
    }

    #[test]
    fn partition_tables_are_told_from_boot_code() {
        let signature: (usize, &[u8]) = (510, &[0x55, 0xaa]);
        let entry: &[u8] = &[0x80, 1, 1, 0, 0x0c, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0];
        assert_eq!(
            words(&holding(&[signature, (446, entry)])),
            "an MBR partition table"
        );
        assert_eq!(words(&holding(&[signature])), "nothing that is known");
        let code = holding(&[signature, (446, &[0xeb; 64])]);
        assert_eq!(words(&code), "nothing that is known");
        assert_eq!(
            words(&holding(&[(512, b"EFI PART")])),
            "a GPT partition table"
        );
    }

    #[test]
    fn a_head_that_is_cut_off_anywhere_is_no_trouble() {
        let full = holding(&[(0x438, &[0x53, 0xef]), (510, &[0x55, 0xaa])]);
        for len in (0..0x900).chain([0x8001, 0x8005, LOOK - 1]) {
            name(&Head(&full[..len]));
        }
    }
}

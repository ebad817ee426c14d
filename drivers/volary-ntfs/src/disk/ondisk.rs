//! Structures exactly as they are stored, in little-endian order. `FORMAT.md` names the sources.

use zerocopy::byteorder::{LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

type L16 = U16<LE>;
type L32 = U32<LE>;
type L64 = U64<LE>;

/// The bytes of a boot sector that are read, whatever the size of a sector.
pub(crate) const BOOT_LEN: usize = 512;
/// The stride of update sequences, and the unit of index blocks smaller than a cluster, in bytes.
pub(crate) const STRIDE: usize = 512;

/// MFT record numbers of NTFS's own files (`$MFT`, `$MFTMirr`, …).
pub(crate) mod number {
    pub(crate) const MFT: u64 = 0;
    pub(crate) const MIRROR: u64 = 1;
    pub(crate) const LOG: u64 = 2;
    pub(crate) const VOLUME: u64 = 3;
    pub(crate) const ROOT: u64 = 5;
    pub(crate) const BITMAP: u64 = 6;
    pub(crate) const BAD: u64 = 8;
    pub(crate) const SECURE: u64 = 9;
    pub(crate) const UPCASE: u64 = 10;
    /// The lowest record number of an ordinary file. Records below it hold metafiles such as `$MFT`.
    pub(crate) const FIRST_USER: u64 = 16;
    /// `$MFTMirr` holds copies of at least this many records, from record 0 on.
    pub(crate) const MIRRORED: u64 = 4;
}

/// Types of attributes.
pub(crate) mod kind {
    pub(crate) const STANDARD_INFORMATION: u32 = 0x10;
    pub(crate) const ATTRIBUTE_LIST: u32 = 0x20;
    pub(crate) const FILE_NAME: u32 = 0x30;
    pub(crate) const SECURITY_DESCRIPTOR: u32 = 0x50;
    pub(crate) const VOLUME_NAME: u32 = 0x60;
    pub(crate) const VOLUME_INFORMATION: u32 = 0x70;
    pub(crate) const DATA: u32 = 0x80;
    pub(crate) const INDEX_ROOT: u32 = 0x90;
    pub(crate) const INDEX_ALLOCATION: u32 = 0xa0;
    pub(crate) const BITMAP: u32 = 0xb0;
    pub(crate) const REPARSE_POINT: u32 = 0xc0;
    pub(crate) const EA: u32 = 0xe0;
    pub(crate) const END: u32 = 0xffff_ffff;
}

/// Flags of an attribute.
pub(crate) mod aflag {
    /// The method of compression; 0 for none.
    pub(crate) const COMPRESSION: u16 = 0x00ff;
    pub(crate) const LZNT1: u16 = 0x0001;
    pub(crate) const ENCRYPTED: u16 = 0x4000;
    pub(crate) const SPARSE: u16 = 0x8000;
}

/// Flags of a record.
pub(crate) mod rflag {
    pub(crate) const IN_USE: u16 = 1;
    pub(crate) const DIRECTORY: u16 = 2;
    /// The flags above, and two that only the volume's own files have.
    pub(crate) const KNOWN: u16 = 0xf;
}

/// Flags of a file.
pub(crate) mod fflag {
    pub(crate) const SYSTEM: u32 = 0x4;
    /// The flags that DOS has, too.
    pub(crate) const DOS: u32 = 0x27;
    pub(crate) const REPARSE_POINT: u32 = 0x400;
    /// In a name: the name is that of a directory.
    pub(crate) const DIRECTORY: u32 = 0x1000_0000;
}

/// Namespaces of file names.
pub(crate) mod space {
    pub(crate) const DOS: u8 = 2;
}

/// Flags of an index entry.
pub(crate) mod eflag {
    /// A block of the index lies below.
    pub(crate) const NODE: u16 = 1;
    /// The entry is the last of its block, and has no key.
    pub(crate) const END: u16 = 2;
}

/// Flags of the volume.
pub(crate) mod vflag {
    pub(crate) const DIRTY: u16 = 1;
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Boot {
    pub(crate) jump: [u8; 3],
    pub(crate) oem_id: [u8; 8],
    pub(crate) bytes_per_sector: L16,
    pub(crate) sectors_per_cluster: u8,
    pub(crate) unused1: [u8; 26],
    pub(crate) total_sectors: L64,
    pub(crate) mft_lcn: L64,
    pub(crate) mirror_lcn: L64,
    pub(crate) clusters_per_record: i8,
    pub(crate) unused2: [u8; 3],
    pub(crate) clusters_per_index: i8,
    pub(crate) unused3: [u8; 3],
    pub(crate) serial: L64,
    pub(crate) checksum: L32,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RecordHead {
    pub(crate) magic: [u8; 4],
    pub(crate) usa_offset: L16,
    pub(crate) usa_count: L16,
    pub(crate) lsn: L64,
    pub(crate) sequence: L16,
    pub(crate) links: L16,
    pub(crate) attrs_offset: L16,
    pub(crate) flags: L16,
    pub(crate) in_use: L32,
    pub(crate) allocated: L32,
    /// The reference to the base record; 0 in a base record.
    pub(crate) base: L64,
    pub(crate) next_id: L16,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AttrHead {
    pub(crate) kind: L32,
    pub(crate) len: L32,
    pub(crate) is_mapped: u8,
    pub(crate) name_len: u8,
    pub(crate) name_offset: L16,
    pub(crate) flags: L16,
    pub(crate) id: L16,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ResidentHead {
    pub(crate) head: AttrHead,
    pub(crate) value_len: L32,
    pub(crate) value_offset: L16,
    pub(crate) flags: u8,
    pub(crate) reserved: u8,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct MappedHead {
    pub(crate) head: AttrHead,
    pub(crate) lowest_vcn: L64,
    pub(crate) highest_vcn: L64,
    pub(crate) pairs_offset: L16,
    pub(crate) compression_unit: u8,
    pub(crate) reserved: [u8; 5],
    pub(crate) allocated: L64,
    pub(crate) size: L64,
    pub(crate) initialized: L64,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ListEntry {
    pub(crate) kind: L32,
    pub(crate) len: L16,
    pub(crate) name_len: u8,
    pub(crate) name_offset: u8,
    pub(crate) lowest_vcn: L64,
    pub(crate) reference: L64,
    pub(crate) id: L16,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct StandardInformation {
    pub(crate) created: L64,
    pub(crate) modified: L64,
    pub(crate) changed: L64,
    pub(crate) accessed: L64,
    pub(crate) flags: L32,
}

/// The offset of the security id in the value of `$STANDARD_INFORMATION`, in volumes of version 3.
pub(crate) const SECURITY_ID: usize = 52;

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct FileName {
    pub(crate) parent: L64,
    pub(crate) times: [L64; 4],
    pub(crate) allocated: L64,
    pub(crate) size: L64,
    pub(crate) flags: L32,
    pub(crate) extra: L32,
    pub(crate) name_len: u8,
    pub(crate) space: u8,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IndexRoot {
    pub(crate) kind: L32,
    pub(crate) collation: L32,
    pub(crate) block_len: L32,
    pub(crate) clusters_per_block: u8,
    pub(crate) reserved: [u8; 3],
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IndexHead {
    pub(crate) entries_offset: L32,
    pub(crate) entries_len: L32,
    pub(crate) allocated: L32,
    pub(crate) flags: u8,
    pub(crate) reserved: [u8; 3],
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IndexBlock {
    pub(crate) magic: [u8; 4],
    pub(crate) usa_offset: L16,
    pub(crate) usa_count: L16,
    pub(crate) lsn: L64,
    pub(crate) vcn: L64,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct IndexEntry {
    /// In an index of names, the file reference. In other indexes, the offset (16 bits) and length
    /// (16 bits) of the entry's data.
    pub(crate) reference: L64,
    pub(crate) len: L16,
    pub(crate) key_len: L16,
    pub(crate) flags: L16,
    pub(crate) reserved: L16,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SecurityHead {
    pub(crate) hash: L32,
    pub(crate) id: L32,
    pub(crate) offset: L64,
    pub(crate) len: L32,
}

#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct VolumeInformation {
    pub(crate) reserved: L64,
    pub(crate) major: u8,
    pub(crate) minor: u8,
    pub(crate) flags: L16,
}

/// A reference to a record: its number in the low 48 bits, and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) number: u64,
    pub(crate) sequence: u16,
}

impl From<u64> for Reference {
    fn from(raw: u64) -> Self {
        Self {
            number: raw & 0xffff_ffff_ffff,
            sequence: (raw >> 48) as u16,
        }
    }
}

//! Structures exactly as stored, with the field names of ECMA-119.

use zerocopy::byteorder::{BE, LE, U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Bytes of a logical sector.
pub(crate) const SECTOR: u64 = 2048;
/// The first sector of the volume descriptors.
pub(crate) const DESCRIPTORS: u64 = 16;
/// The identifier that follows the type in every descriptor.
pub(crate) const STANDARD_ID: [u8; 5] = *b"CD001";

/// Types of volume descriptors (8.1.1).
pub(crate) mod kind {
    pub(crate) const BOOT: u8 = 0;
    pub(crate) const PRIMARY: u8 = 1;
    pub(crate) const SUPPLEMENTARY: u8 = 2;
    pub(crate) const PARTITION: u8 = 3;
    pub(crate) const TERMINATOR: u8 = 255;
}

/// File flags of a directory record (9.1.6).
pub(crate) mod flag {
    pub(crate) const DIRECTORY: u8 = 0x02;
    pub(crate) const ASSOCIATED: u8 = 0x04;
    /// More sections of the file follow.
    pub(crate) const MULTI_EXTENT: u8 = 0x80;
}

/// A number in both byte orders (7.2.3). The little-endian one is used, as in other readers,
/// because some writers got the other one wrong.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Both16 {
    le: U16<LE>,
    be: U16<BE>,
}

/// A 32-bit number in both byte orders (7.3.3).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Both32 {
    le: U32<LE>,
    be: U32<BE>,
}

impl Both16 {
    pub(crate) fn get(&self) -> u16 {
        self.le.get()
    }
    pub(crate) fn agree(&self) -> bool {
        self.le.get() == self.be.get()
    }
}

impl Both32 {
    pub(crate) fn get(&self) -> u32 {
        self.le.get()
    }
    pub(crate) fn agree(&self) -> bool {
        self.le.get() == self.be.get()
    }
}

/// A primary or supplementary volume descriptor (8.4, 8.5).
#[derive(Clone, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct VolumeDescriptor {
    pub(crate) kind: u8,
    pub(crate) standard_identifier: [u8; 5],
    pub(crate) version: u8,
    pub(crate) volume_flags: u8,
    pub(crate) system_identifier: [u8; 32],
    pub(crate) volume_identifier: [u8; 32],
    unused_73: [u8; 8],
    pub(crate) volume_space_size: Both32,
    pub(crate) escape_sequences: [u8; 32],
    pub(crate) volume_set_size: Both16,
    pub(crate) volume_sequence_number: Both16,
    pub(crate) logical_block_size: Both16,
    pub(crate) path_table_size: Both32,
    pub(crate) type_l_path_table: U32<LE>,
    pub(crate) optional_type_l_path_table: U32<LE>,
    pub(crate) type_m_path_table: U32<BE>,
    pub(crate) optional_type_m_path_table: U32<BE>,
    pub(crate) root_directory_record: [u8; 34],
    pub(crate) volume_set_identifier: [u8; 128],
    pub(crate) publisher_identifier: [u8; 128],
    pub(crate) data_preparer_identifier: [u8; 128],
    pub(crate) application_identifier: [u8; 128],
    pub(crate) copyright_file_identifier: [u8; 37],
    pub(crate) abstract_file_identifier: [u8; 37],
    pub(crate) bibliographic_file_identifier: [u8; 37],
    pub(crate) volume_creation: [u8; 17],
    pub(crate) volume_modification: [u8; 17],
    pub(crate) volume_expiration: [u8; 17],
    pub(crate) volume_effective: [u8; 17],
    pub(crate) file_structure_version: u8,
    reserved_883: u8,
    application_use: [u8; 512],
    reserved_1396: [u8; 653],
}

/// A boot record (8.2), as El Torito uses it.
#[derive(Clone, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BootRecord {
    pub(crate) kind: u8,
    pub(crate) standard_identifier: [u8; 5],
    pub(crate) version: u8,
    pub(crate) boot_system_identifier: [u8; 32],
    pub(crate) boot_identifier: [u8; 32],
    pub(crate) boot_catalog: U32<LE>,
    boot_system_use: [u8; 1973],
}

/// The fixed part of a directory record (9.1).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DirectoryRecord {
    pub(crate) length: u8,
    pub(crate) extended_attribute_length: u8,
    pub(crate) extent_location: Both32,
    pub(crate) data_length: Both32,
    pub(crate) recording_date: [u8; 7],
    pub(crate) file_flags: u8,
    pub(crate) file_unit_size: u8,
    pub(crate) interleave_gap_size: u8,
    pub(crate) volume_sequence_number: Both16,
    pub(crate) identifier_length: u8,
}

/// Length of [`DirectoryRecord`].
pub(crate) const RECORD_LEN: usize = 33;

/// The fixed part of a path table record, in little-endian order (9.4).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct PathTableRecord {
    pub(crate) identifier_length: u8,
    pub(crate) extended_attribute_length: u8,
    pub(crate) extent_location: U32<LE>,
    pub(crate) parent_directory_number: U16<LE>,
}

/// The first entry of a boot catalog (El Torito 2.1).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ValidationEntry {
    pub(crate) header_id: u8,
    pub(crate) platform_id: u8,
    reserved: U16<LE>,
    pub(crate) id_string: [u8; 24],
    pub(crate) checksum: U16<LE>,
    pub(crate) key: [u8; 2],
}

/// A boot image (El Torito 2.2 and 2.4).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BootEntry {
    pub(crate) boot_indicator: u8,
    pub(crate) boot_media_type: u8,
    pub(crate) load_segment: U16<LE>,
    pub(crate) system_type: u8,
    unused: u8,
    pub(crate) sector_count: U16<LE>,
    pub(crate) load_rba: U32<LE>,
    reserved: [u8; 20],
}

/// The head of a section of further images (El Torito 2.3).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SectionHeader {
    pub(crate) header_indicator: u8,
    pub(crate) platform_id: u8,
    pub(crate) entries: U16<LE>,
    id_string: [u8; 28],
}

const _: () = assert!(size_of::<VolumeDescriptor>() == 2048);
const _: () = assert!(size_of::<BootRecord>() == 2048);
const _: () = assert!(size_of::<DirectoryRecord>() == RECORD_LEN);
const _: () = assert!(size_of::<PathTableRecord>() == 8);
const _: () = assert!(size_of::<ValidationEntry>() == 32);
const _: () = assert!(size_of::<BootEntry>() == 32);
const _: () = assert!(size_of::<SectionHeader>() == 32);

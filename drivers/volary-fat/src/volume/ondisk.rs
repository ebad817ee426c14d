//! Structures exactly as stored, with the field names of Microsoft's
//! specification ("FAT: General Overview of On-Disk Format", 1.03, 2000; here
//! "the specification"). All numbers are little-endian and unaligned.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first 36 bytes of the boot sector (specification, page 9).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub(crate) struct Bpb {
    pub BS_jmpBoot: [u8; 3],
    pub BS_OEMName: [u8; 8],
    pub BPB_BytsPerSec: U16,
    pub BPB_SecPerClus: u8,
    pub BPB_RsvdSecCnt: U16,
    pub BPB_NumFATs: u8,
    pub BPB_RootEntCnt: U16,
    pub BPB_TotSec16: U16,
    pub BPB_Media: u8,
    pub BPB_FATSz16: U16,
    pub BPB_SecPerTrk: U16,
    pub BPB_NumHeads: U16,
    pub BPB_HiddSec: U32,
    pub BPB_TotSec32: U32,
}

/// Bytes 36–89 of a FAT32 boot sector (page 12).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub(crate) struct Bpb32 {
    pub BPB_FATSz32: U32,
    /// Bits 0–3: the active FAT; bit 7: only that one is kept.
    pub BPB_ExtFlags: U16,
    pub BPB_FSVer: U16,
    pub BPB_RootClus: U32,
    pub BPB_FSInfo: U16,
    pub BPB_BkBootSec: U16,
    pub BPB_Reserved: [u8; 12],
    pub tail: BootTail,
}

/// What FAT12 and FAT16 have at byte 36, FAT32 at byte 64 (pages 11 and 12).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub(crate) struct BootTail {
    pub BS_DrvNum: u8,
    /// Bit 0: not cleanly left; bit 1: the disk failed (Windows NT's use, kept
    /// by Linux and dosfstools; the only such mark that FAT12 has).
    pub BS_Reserved1: u8,
    /// 0x29: the next three fields are there; 0x28: only the first of them.
    pub BS_BootSig: u8,
    pub BS_VolID: U32,
    pub BS_VolLab: [u8; 11],
    pub BS_FilSysType: [u8; 8],
}

/// The FSInfo sector (page 21), without its filling.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub(crate) struct FsInfo {
    pub FSI_LeadSig: U32,
    pub FSI_Reserved1: [u8; 480],
    pub FSI_StrucSig: U32,
    /// 0xFFFFFFFF: not known.
    pub FSI_Free_Count: U32,
    /// 0xFFFFFFFF: not known.
    pub FSI_Nxt_Free: U32,
    pub FSI_Reserved2: [u8; 12],
    pub FSI_TrailSig: U32,
}

/// A directory entry with a short name (page 23).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub struct DirEntry {
    pub DIR_Name: [u8; 11],
    pub DIR_Attr: u8,
    /// Bit 3: the name is lower-case; bit 4: the extension is (Windows NT).
    pub DIR_NTRes: u8,
    /// Hundredths of a second past `DIR_CrtTime`, 0–199.
    pub DIR_CrtTimeTenth: u8,
    pub DIR_CrtTime: U16,
    pub DIR_CrtDate: U16,
    pub DIR_LstAccDate: U16,
    pub DIR_FstClusHI: U16,
    pub DIR_WrtTime: U16,
    pub DIR_WrtDate: U16,
    pub DIR_FstClusLO: U16,
    pub DIR_FileSize: U32,
}

/// A directory entry with a part of a long name (page 25).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
#[expect(non_snake_case, reason = "the specification's names")]
pub struct LongEntry {
    /// 1–20, with [`LAST_LONG_ENTRY`] in the one that stands first.
    pub LDIR_Ord: u8,
    pub LDIR_Name1: [U16; 5],
    pub LDIR_Attr: u8,
    pub LDIR_Type: u8,
    pub LDIR_Chksum: u8,
    pub LDIR_Name2: [U16; 6],
    pub LDIR_FstClusLO: U16,
    pub LDIR_Name3: [U16; 2],
}

const _: () = assert!(size_of::<Bpb>() == 36);
const _: () = assert!(size_of::<Bpb32>() == 54);
const _: () = assert!(size_of::<BootTail>() == 26);
const _: () = assert!(size_of::<FsInfo>() == 512);
const _: () = assert!(size_of::<DirEntry>() == ENTRY_LEN);
const _: () = assert!(size_of::<LongEntry>() == ENTRY_LEN);

/// Length of a directory entry of either form, in bytes.
pub(crate) const ENTRY_LEN: usize = 32;

/// A slot's bytes.
pub(crate) type Raw = [u8; ENTRY_LEN];

/// Most entries that a directory can have (page 24: 2 MiB).
pub(crate) const DIR_ENTRIES_MAX: u32 = 65_536;

/// `DIR_Attr` bits.
pub(crate) mod attr {
    pub(crate) const READ_ONLY: u8 = 0x01;
    pub(crate) const HIDDEN: u8 = 0x02;
    pub(crate) const SYSTEM: u8 = 0x04;
    pub(crate) const VOLUME_ID: u8 = 0x08;
    pub(crate) const DIRECTORY: u8 = 0x10;
    pub(crate) const ARCHIVE: u8 = 0x20;
    pub(crate) const LONG_NAME: u8 = 0x0f;
    pub(crate) const LONG_NAME_MASK: u8 = 0x3f;
}

/// First byte of `DIR_Name`: this entry is free.
pub(crate) const FREE: u8 = 0xe5;
/// First byte of `DIR_Name`: this entry and all after it are free.
pub(crate) const END: u8 = 0x00;
/// First byte of `DIR_Name`: stands for a real 0xE5 (page 24).
pub(crate) const KANJI: u8 = 0x05;
/// In `LDIR_Ord` of the entry that stands first.
pub(crate) const LAST_LONG_ENTRY: u8 = 0x40;

/// `FSI_LeadSig`.
pub(crate) const FSI_LEAD: u32 = 0x4161_5252;
/// `FSI_StrucSig`.
pub(crate) const FSI_STRUC: u32 = 0x6141_7272;
/// `FSI_TrailSig`.
pub(crate) const FSI_TRAIL: u32 = 0xaa55_0000;

/// Bytes 510 and 511 of the boot sector.
pub(crate) const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];

/// In FAT\[1\] of FAT16: cleanly left (page 18). Clear: not.
pub(crate) const CLEAN_SHUT_16: u32 = 0x8000;
/// In FAT\[1\] of FAT16: the disk did not fail.
pub(crate) const NO_HARD_ERR_16: u32 = 0x4000;
/// In FAT\[1\] of FAT32: cleanly left.
pub(crate) const CLEAN_SHUT_32: u32 = 0x0800_0000;
/// In FAT\[1\] of FAT32: the disk did not fail.
pub(crate) const NO_HARD_ERR_32: u32 = 0x0400_0000;

/// In `BS_Reserved1`: not cleanly left.
pub(crate) const STATE_DIRTY: u8 = 1;
/// In `BS_Reserved1`: the disk failed.
pub(crate) const STATE_ERROR: u8 = 2;

/// Byte offset in the boot sector of the [`BootTail`], by kind.
pub(crate) const fn tail_offset(fat32: bool) -> usize {
    if fat32 { 64 } else { 36 }
}

impl DirEntry {
    /// Returns the first cluster. On FAT12 and FAT16 the upper half is not looked at:
    /// other systems keep other things there.
    pub fn first_cluster(&self, fat32: bool) -> u32 {
        let low = u32::from(self.DIR_FstClusLO.get());
        if fat32 {
            u32::from(self.DIR_FstClusHI.get()) << 16 | low
        } else {
            low
        }
    }

    /// Sets the first cluster; the upper half only on FAT32.
    pub fn set_first_cluster(&mut self, cluster: u32, fat32: bool) {
        let [a, b, c, d] = cluster.to_le_bytes();
        self.DIR_FstClusLO.set(u16::from_le_bytes([a, b]));
        if fat32 {
            self.DIR_FstClusHI.set(u16::from_le_bytes([c, d]));
        }
    }

    /// Returns whether this is a directory and not a label.
    pub fn is_dir(&self) -> bool {
        self.DIR_Attr & (attr::DIRECTORY | attr::VOLUME_ID) == attr::DIRECTORY
    }

    /// Returns whether this is the label of the volume (or, in DosFs's layout, the
    /// tail of a long name).
    pub fn is_label(&self) -> bool {
        !self.is_long() && self.DIR_Attr & attr::VOLUME_ID != 0
    }

    /// Returns whether this is in truth a [`LongEntry`].
    pub fn is_long(&self) -> bool {
        self.DIR_Attr & attr::LONG_NAME_MASK == attr::LONG_NAME
    }
}

/// A short name as it is stored: padded with spaces, without the dot.
pub(crate) type Short = [u8; 11];

/// The name of a directory's entry for itself.
pub(crate) const DOT: Short = *b".          ";
/// The name of a directory's entry for its parent.
pub(crate) const DOT_DOT: Short = *b"..         ";

/// Returns whether an entry is `.` or `..`.
pub(crate) fn is_dots(entry: &DirEntry) -> bool {
    entry.DIR_Name == DOT || entry.DIR_Name == DOT_DOT
}

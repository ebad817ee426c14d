//! The boot sector's bytes.

use super::plan::Plan;
use super::program::{self, SIGNATURE_AT};
use crate::volume::layout::{FatKind, Layout};
use crate::volume::ondisk::{BOOT_SIGNATURE, BootTail, Bpb, Bpb32};
use volary_core::Result;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

/// What a FAT32 boot sector names as the place of FSInfo.
pub(super) const FSINFO_SECTOR: u16 = 1;
/// First cluster of FAT32's root directory.
pub(super) const ROOT_CLUSTER: u32 = 2;

/// Shown where there is no label.
const NO_NAME: [u8; 11] = *b"NO NAME    ";

/// Returns the layout that the boot sector describes.
///
/// # Errors
/// None but those of a mistake in these modules.
pub(super) fn layout(plan: &Plan<'_>) -> Result<Layout> {
    Layout::parse(&sector(plan), plan.device_len)
}

/// Returns the boot sector's first 512 bytes.
pub(super) fn sector(plan: &Plan<'_>) -> [u8; 512] {
    let fat32 = plan.kind == FatKind::Fat32;
    let mut out = [0; 512];
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(bpb(plan, fat32).as_bytes());
    if fat32 {
        bytes.extend_from_slice(bpb32(plan).as_bytes());
    } else {
        bytes.extend_from_slice(tail(plan).as_bytes());
    }
    bytes.extend_from_slice(&program::program(&plan.request.message, bytes.len()));
    for (to, from) in out.iter_mut().zip(&bytes) {
        *to = *from;
    }
    for (to, from) in out.iter_mut().skip(SIGNATURE_AT).zip(BOOT_SIGNATURE) {
        *to = from;
    }
    out
}

fn bpb(plan: &Plan<'_>, fat32: bool) -> Bpb {
    // A number that fits goes into the old field, except on FAT32.
    let small = |n: u32| u16::try_from(n).ok().filter(|_| !fat32).unwrap_or(0);
    let total16 = small(plan.total);
    Bpb {
        BS_jmpBoot: [0xeb, (program::program_at(fat32) - 2) as u8, 0x90],
        BS_OEMName: plan.request.oem,
        BPB_BytsPerSec: U16::new(plan.sector_len as u16),
        BPB_SecPerClus: plan.cluster as u8,
        BPB_RsvdSecCnt: U16::new(plan.reserved),
        BPB_NumFATs: plan.fat_count,
        BPB_RootEntCnt: U16::new(plan.root_entries),
        BPB_TotSec16: U16::new(total16),
        BPB_Media: plan.media,
        BPB_FATSz16: U16::new(small(plan.fat_sectors)),
        BPB_SecPerTrk: U16::new(plan.track),
        BPB_NumHeads: U16::new(plan.heads),
        BPB_HiddSec: U32::new(plan.request.hidden),
        BPB_TotSec32: U32::new(if total16 == 0 { plan.total } else { 0 }),
    }
}

fn bpb32(plan: &Plan<'_>) -> Bpb32 {
    Bpb32 {
        BPB_FATSz32: U32::new(plan.fat_sectors),
        BPB_ExtFlags: U16::ZERO,
        BPB_FSVer: U16::ZERO,
        BPB_RootClus: U32::new(ROOT_CLUSTER),
        BPB_FSInfo: U16::new(FSINFO_SECTOR),
        BPB_BkBootSec: U16::new(plan.backup),
        BPB_Reserved: [0; 12],
        tail: tail(plan),
    }
}

fn tail(plan: &Plan<'_>) -> BootTail {
    BootTail {
        BS_DrvNum: plan.drive,
        BS_Reserved1: 0,
        BS_BootSig: 0x29,
        BS_VolID: U32::new(plan.request.serial),
        BS_VolLab: plan.request.label.unwrap_or(NO_NAME),
        BS_FilSysType: match plan.kind {
            FatKind::Fat12 => *b"FAT12   ",
            FatKind::Fat16 => *b"FAT16   ",
            FatKind::Fat32 => *b"FAT32   ",
        },
    }
}

//! The boot sector's bytes, and a program that says that it starts nothing.

use super::plan::Plan;
use crate::ondisk::{BOOT_SIGNATURE, BootTail, Bpb, Bpb32, tail_offset};
use crate::volume::FatKind;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

/// Where the BIOS puts the boot sector.
const LOADED_AT: u16 = 0x7c00;
/// Where the signature stands, and the program ends.
const SIGNATURE_AT: usize = 510;

/// What a FAT32 boot sector names as the place of FSInfo.
pub(super) const FSINFO_SECTOR: u16 = 1;
/// First cluster of FAT32's root directory.
pub(super) const ROOT_CLUSTER: u32 = 2;

/// Shown where there is no label.
const NO_NAME: [u8; 11] = *b"NO NAME    ";

/// The program, for the 8086: prints the text after it by the BIOS, waits for
/// a key, and lets the BIOS try again. Bytes 5 and 6 are the text's address.
const PROGRAM: [u8; 29] = [
    0x31, 0xc0, // xor ax, ax
    0x8e, 0xd8, // mov ds, ax
    0xbe, 0, 0,    // mov si, text
    0xfc, // cld
    0xac, // next: lodsb
    0x84, 0xc0, // test al, al
    0x74, 0x09, // jz wait
    0xb4, 0x0e, // mov ah, 0eh
    0xbb, 0x07, 0x00, // mov bx, 7
    0xcd, 0x10, // int 10h
    0xeb, 0xf2, // jmp next
    0x98, // wait: cbw (al is 0, so ah is)
    0xcd, 0x16, // int 16h
    0xcd, 0x19, // int 19h
    0xeb, 0xfe, // here: jmp here
];

/// Where the program begins.
fn program_at(fat32: bool) -> usize {
    tail_offset(fat32) + size_of::<BootTail>()
}

/// Bytes that the program's text can have; a NUL comes after.
pub(super) fn message_room(fat32: bool) -> usize {
    SIGNATURE_AT - program_at(fat32) - PROGRAM.len() - 1
}

/// The boot sector's first 512 bytes.
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
    bytes.extend_from_slice(&program(plan, bytes.len()));
    for (to, from) in out.iter_mut().zip(&bytes) {
        *to = *from;
    }
    for (to, from) in out.iter_mut().skip(SIGNATURE_AT).zip(BOOT_SIGNATURE) {
        *to = from;
    }
    out
}

/// The program and its text, as they stand at byte `at`.
fn program(plan: &Plan<'_>, at: usize) -> Vec<u8> {
    let text = LOADED_AT + (at + PROGRAM.len()) as u16;
    let mut out = PROGRAM.to_vec();
    for (to, from) in out.iter_mut().skip(5).zip(text.to_le_bytes()) {
        *to = from;
    }
    out.extend_from_slice(&plan.request.message);
    out
}

fn bpb(plan: &Plan<'_>, fat32: bool) -> Bpb {
    // A number that fits goes into the old field, except on FAT32.
    let small = |n: u32| u16::try_from(n).ok().filter(|_| !fat32).unwrap_or(0);
    let total16 = small(plan.total);
    Bpb {
        BS_jmpBoot: [0xeb, (program_at(fat32) - 2) as u8, 0x90],
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

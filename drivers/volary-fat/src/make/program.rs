//! A program in the boot sector, which says that it starts nothing.

use crate::volume::ondisk::{BootTail, tail_offset};

/// Where the BIOS puts the boot sector.
const LOADED_AT: u16 = 0x7c00;
/// Where the signature stands, and the program ends.
pub(super) const SIGNATURE_AT: usize = 510;

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

/// Returns where the program begins.
pub(super) fn program_at(fat32: bool) -> usize {
    tail_offset(fat32) + size_of::<BootTail>()
}

/// Returns bytes that the program's text can have; a NUL comes after.
pub(super) fn message_room(fat32: bool) -> usize {
    SIGNATURE_AT - program_at(fat32) - PROGRAM.len() - 1
}

/// Returns the program and its text, as they stand at byte `at`.
pub(super) fn program(message: &[u8], at: usize) -> Vec<u8> {
    let text = LOADED_AT + (at + PROGRAM.len()) as u16;
    let mut out = PROGRAM.to_vec();
    for (to, from) in out.iter_mut().skip(5).zip(text.to_le_bytes()) {
        *to = from;
    }
    out.extend_from_slice(message);
    out
}

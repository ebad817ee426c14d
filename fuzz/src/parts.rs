//! The target for partition tables: MBR, GPT and BSD disklabels.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use std::sync::{Arc, OnceLock};
use volary_block::{partition, partitions};
use volary_core::{BlockDevice, Kind};

const SIZE: usize = 1 << 19;
/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 200_000;
const HEAP: usize = 8 << 20;
const CHANGES_MAX: usize = 16;
const SECTOR: usize = 512;

/// Puts numbers, low byte first, into a disk.
fn put(disk: &mut [u8], at: usize, bytes: &[u8]) {
    disk[at..at + bytes.len()].copy_from_slice(bytes);
}

/// An entry of an MBR: its place in the table, kind, first sector, sectors.
fn entry(disk: &mut [u8], sector: usize, (place, kind): (usize, u8), first: u32, count: u32) {
    let at = sector * SECTOR + 446 + 16 * place;
    put(disk, at + 4, &[kind]);
    put(disk, at + 8, &first.to_le_bytes());
    put(disk, at + 12, &count.to_le_bytes());
    put(disk, sector * SECTOR + 510, &[0x55, 0xaa]);
}

/// Two primaries, one with a disklabel in it, and a chain of two logical ones.
fn mbr() -> Vec<u8> {
    let mut disk = vec![0; SIZE];
    entry(&mut disk, 0, (0, 0x0c), 100, 100);
    entry(&mut disk, 0, (1, 0xa5), 300, 100);
    entry(&mut disk, 0, (2, 0x0f), 600, 400);
    entry(&mut disk, 600, (0, 0x83), 10, 50);
    entry(&mut disk, 600, (1, 0x05), 100, 100);
    entry(&mut disk, 700, (0, 0x83), 10, 50);
    label(&mut disk, 301, 300);
    disk
}

/// A disklabel at a sector with three partitions, the first at sector `first`.
fn label(disk: &mut [u8], sector: usize, first: u32) {
    let at = sector * SECTOR;
    put(disk, at, &0x8256_4557_u32.to_le_bytes());
    put(disk, at + 40, &512_u32.to_le_bytes());
    put(disk, at + 132, &0x8256_4557_u32.to_le_bytes());
    put(disk, at + 138, &8_u16.to_le_bytes());
    for place in 0..8_usize {
        let entry = at + 148 + 16 * place;
        put(disk, entry, &50_u32.to_le_bytes());
        put(disk, entry + 4, &(first + 8 * place as u32).to_le_bytes());
        put(disk, entry + 12, &[7]);
    }
    seal_label(disk, sector);
}

fn seal_label(disk: &mut [u8], sector: usize) {
    let at = sector * SECTOR;
    put(disk, at + 136, &[0; 2]);
    let count = usize::from(u16::from_le_bytes([disk[at + 138], disk[at + 139]]));
    let end = (at + 148 + 16 * count.min(64)).min(disk.len());
    let words = disk[at..end].chunks_exact(2);
    let sum = words.fold(0, |sum, w| sum ^ u16::from_le_bytes([w[0], w[1]]));
    put(disk, at + 136, &sum.to_le_bytes());
}

/// Returns a GPT with two partitions, and its copy at the end.
fn gpt() -> Vec<u8> {
    let mut disk = vec![0; SIZE];
    let last = (SIZE / SECTOR - 1) as u64;
    entry(&mut disk, 0, (0, 0xee), 1, last as u32);
    for (place, first) in [(0_usize, 100_u64), (1, 300)] {
        let at = 2 * SECTOR + 128 * place;
        put(&mut disk, at, &[0xa2; 32]);
        put(&mut disk, at + 32, &first.to_le_bytes());
        put(&mut disk, at + 40, &(first + 99).to_le_bytes());
        put(&mut disk, at + 56, b"n\0a\0m\0e\0");
    }
    put(&mut disk, SECTOR, b"EFI PART\0\0\x01\0\x5c\0\0\0");
    let numbers = [1, last, 34, last - 34];
    for (at, number) in numbers.into_iter().enumerate() {
        put(&mut disk, SECTOR + 24 + 8 * at, &number.to_le_bytes());
    }
    put(&mut disk, SECTOR + 72, &2_u64.to_le_bytes());
    put(&mut disk, SECTOR + 80, &128_u32.to_le_bytes());
    put(&mut disk, SECTOR + 84, &128_u32.to_le_bytes());
    seal_gpt(&mut disk);
    disk
}

fn seal_gpt(disk: &mut [u8]) {
    let entries = crc(&disk[2 * SECTOR..34 * SECTOR]);
    put(disk, SECTOR + 88, &entries.to_le_bytes());
    put(disk, SECTOR + 16, &[0; 4]);
    let header = crc(&disk[SECTOR..SECTOR + 92]);
    put(disk, SECTOR + 16, &header.to_le_bytes());
}

/// CRC-32, as GPT has it.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    };
    !bytes.iter().fold(!0, step)
}

fn disks() -> &'static [Vec<u8>; 3] {
    static DISKS: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    DISKS.get_or_init(|| {
        let mut bare = vec![0; SIZE];
        label(&mut bare, 1, 16);
        [mbr(), gpt(), bare]
    })
}

/// Lists the partitions of a disk that the input changes, and opens each.
pub fn tables(input: &[u8]) {
    let mut input = Input::new(input);
    let which = usize::from(input.byte());
    let mut disk = disks()[which % 3].clone();
    let places: [&[usize]; 3] = [&[446, 446, 307_646, 358_846, 154_112], &[512, 1024], &[512]];
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        let places = places[which % 3];
        let place = places[usize::from(input.byte()) % places.len()];
        let (at, len) = (usize::from(input.byte()), usize::from(input.byte() % 8));
        let bytes = match len {
            0 => vec![0xff; 4],
            len => input.bytes(len).to_vec(),
        };
        put(&mut disk, place + at, &bytes);
    }
    if which & 0x80 == 0 {
        match which % 3 {
            0 => seal_label(&mut disk, 301),
            1 => seal_gpt(&mut disk),
            _ => seal_label(&mut disk, 1),
        }
    }
    let dev: Arc<dyn BlockDevice> = Arc::new(Overlay::new(disk.into(), FUEL));
    heap::limit(HEAP);
    match partitions(&*dev) {
        Ok(all) => all.iter().for_each(|p| {
            let slice = p.open(Arc::clone(&dev)).expect("a partition on the disk");
            assert_eq!(slice.geometry().size, p.len);
            assert!(partition(&*dev, &p.id).is_ok(), "{}", p.id);
        }),
        Err(e) => assert_ne!(e.kind(), Kind::Invalid, "{e}"),
    }
    let _ = partition(&*dev, "9");
    heap::limit(usize::MAX);
}

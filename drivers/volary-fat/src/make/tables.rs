//! What is chosen where the user does not say: by size, as Microsoft's
//! tables have it (specification, page 20), and as floppies have always been.

use crate::volume::layout::FatKind;

/// A floppy's layout.
#[derive(Debug)]
pub(super) struct Floppy {
    pub(super) sectors: u32,
    pub(super) media: u8,
    pub(super) track: u16,
    pub(super) heads: u16,
    pub(super) cluster_len: u32,
    pub(super) root_entries: u16,
}

impl Floppy {
    /// Returns its size in bytes.
    pub(super) fn size(&self) -> u64 {
        u64::from(self.sectors) * 512
    }
}

const fn floppy(kib: u32, media: u8, track: u16, heads: u16, cluster: u32, root: u16) -> Floppy {
    Floppy {
        sectors: kib * 2,
        media,
        track,
        heads,
        cluster_len: cluster,
        root_entries: root,
    }
}

/// DOS's floppies.
pub(super) static FLOPPIES: [Floppy; 9] = [
    floppy(160, 0xfe, 8, 1, 512, 64),
    floppy(180, 0xfc, 9, 1, 512, 64),
    floppy(320, 0xff, 8, 2, 1024, 112),
    floppy(360, 0xfd, 9, 2, 1024, 112),
    floppy(640, 0xfb, 8, 2, 1024, 112),
    floppy(720, 0xf9, 9, 2, 1024, 112),
    floppy(1200, 0xf9, 15, 2, 512, 224),
    floppy(1440, 0xf0, 18, 2, 512, 224),
    floppy(2880, 0xf0, 36, 2, 1024, 240),
];

/// Volumes of at most so many MiB, and their cluster in bytes.
type Row = (u64, u32);

const FAT16: [Row; 7] = [
    (16, 1 << 10),
    (128, 2 << 10),
    (256, 4 << 10),
    (512, 8 << 10),
    (1024, 16 << 10),
    (2048, 32 << 10),
    (u64::MAX, 64 << 10),
];
const FAT32: [Row; 5] = [
    (260, 512),
    (8 << 10, 4 << 10),
    (16 << 10, 8 << 10),
    (32 << 10, 16 << 10),
    (u64::MAX, 32 << 10),
];

/// Returns where the search for a cluster size begins, in bytes.
pub(super) fn cluster_len(kind: FatKind, size: u64) -> u32 {
    let rows: &[Row] = match kind {
        FatKind::Fat12 => &[],
        FatKind::Fat16 => &FAT16,
        FatKind::Fat32 => &FAT32,
    };
    let row = rows.iter().find(|row| size.div_ceil(1 << 20) <= row.0);
    row.map_or(512, |row| row.1)
}

/// Heads and sectors per track of a disk that has none: whole tracks, since
/// mtools refuses a volume that ends in the middle of one; heads as the BIOS
/// would say for LBA.
pub(super) fn geometry(sectors: u32) -> (u16, u16) {
    let track = [63, 32, 16, 8, 4, 2]
        .into_iter()
        .find(|t| sectors.is_multiple_of(*t));
    let track = track.unwrap_or(1);
    let heads = [16, 32, 64, 128]
        .into_iter()
        .find(|h| sectors <= 1024 * h * track);
    // At most 255 and 63.
    (heads.unwrap_or(255) as u16, track as u16)
}

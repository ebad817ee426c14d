//! Segments of the FAT, what a disk writes of them, and the entries in them.

use crate::table::links::{Link, meaning};
use crate::volume::layout::FatKind;

/// Bytes of the FAT in a segment. FAT12 has less than one of it, so that no
/// entry of 12 bits stands across two.
pub(crate) const SEGMENT: usize = 64 << 10;

/// Granularity of dirtiness inside a segment, in bytes: what a disk writes as
/// a whole or not at all.
pub(crate) const UNIT: usize = 512;

/// Where the entries of a FAT are, and what they mean.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    pub(crate) kind: FatKind,
    /// The highest cluster number.
    pub(crate) last: u32,
}

impl Entries {
    /// Clusters whose entries one segment holds.
    pub(crate) fn per_segment(self) -> u32 {
        match self.kind {
            // All of a FAT12 is in segment 0.
            FatKind::Fat12 => u32::MAX,
            FatKind::Fat16 => (SEGMENT / 2) as u32,
            FatKind::Fat32 => (SEGMENT / 4) as u32,
        }
    }

    /// Returns the segment of a cluster's entry and its index there.
    pub(crate) fn place(self, cluster: u32) -> (usize, u32) {
        let per = self.per_segment();
        ((cluster / per) as usize, cluster % per)
    }

    /// Returns the indices of a segment that are clusters: start and end.
    pub(crate) fn indices(self, segment: usize) -> (u32, u32) {
        let per = u64::from(self.per_segment());
        let base = segment as u64 * per;
        let end = (u64::from(self.last) + 1).saturating_sub(base).min(per);
        (if segment == 0 { 2 } else { 0 }, end as u32)
    }

    /// Returns what a value means.
    pub(crate) fn meaning(self, value: u32) -> Link {
        meaning(self.kind, self.last, value)
    }
}

/// Returns a bit for each [`UNIT`] in which these differ.
pub(crate) fn differing(a: &[u8], b: &[u8]) -> u128 {
    let pairs = a.chunks(UNIT).zip(b.chunks(UNIT)).take(128);
    let bits = pairs.enumerate().filter(|(_, (a, b))| a != b);
    bits.fold(0, |units, (i, _)| units | 1 << i)
}

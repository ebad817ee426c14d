//! Entries of FAT12 that stand in two sectors.
//!
//! A disk may write one of the two and not the other, and then the entry has a
//! value that nobody gave it. So one half is made durable before the other:
//! first the one with which the entry is best, which is still an end where
//! that can be, else a number that is no cluster. A check then knows that the
//! chain ended there, or is to end there. Where both ways lead to a cluster
//! only a file's size says so; a directory, which has none, takes another
//! cluster to go on with.

use crate::table::fat::{Link, Table, entry, set_entry};
use crate::table::runs::Runs;
use crate::table::segments::UNIT;
use crate::volume::layout::FatKind;
use volary_core::Result;

/// Returns whether the entry stands in two [`UNIT`]s.
pub(crate) fn is_split(kind: FatKind, index: u32) -> bool {
    let at = u64::from(index) + u64::from(index / 2);
    kind == FatKind::Fat12 && at % UNIT as u64 == UNIT as u64 - 1
}

/// Returns the bits of an entry of FAT12 that stand in its lower byte.
fn lower_bits(index: u32) -> u32 {
    if index.is_multiple_of(2) { 0xff } else { 0xf }
}

/// Returns whether one half of this value is as in the end of a chain, and the other
/// is not: what a disk that wrote one sector leaves where a chain ended or is
/// to end.
pub(crate) fn is_half_an_end(kind: FatKind, index: u32, value: u32) -> bool {
    let lower = lower_bits(index);
    let [low, high] = [value | kind.mask() & !lower, value | lower];
    let ends = [low, high].map(|v| v >= kind.end_min());
    is_split(kind, index) && ends.contains(&true) && value < kind.end_min()
}

impl Table {
    /// The value of a split entry between the writes of its halves: the better
    /// of the two that it can have.
    fn half_way(&self, index: u32, old: u32, new: u32) -> u32 {
        let lower = lower_bits(index);
        let lower_first = new & lower | old & !lower;
        let upper_first = old & lower | new & !lower;
        if self.worth(upper_first) < self.worth(lower_first) {
            upper_first
        } else {
            lower_first
        }
    }

    /// Returns how bad it is if a cut leaves this value: the less the better.
    fn worth(&self, value: u32) -> u8 {
        match self.meaning(value) {
            Link::End => 0,
            Link::Wrong(_) => 1,
            Link::Next(_) => 2,
            // The cluster itself would not be its owner's any more.
            Link::Bad | Link::Free => 3,
        }
    }

    /// Returns a segment on its way from what the disk has to `to`, where only one half
    /// of the split entries is as in `to` of which both change; `None` if there
    /// are none such.
    pub(crate) fn halves(&self, from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
        let mut mid = None;
        for index in (2..=self.last).filter(|&i| is_split(self.kind, i)) {
            let [old, new] = [from, to].map(|bytes| entry(self.kind, bytes, index));
            let way = self.half_way(index, old, new);
            if old != 0 && new != 0 && way != old && way != new {
                let bytes = mid.get_or_insert_with(|| to.to_vec());
                set_entry(self.kind, bytes, index, way);
            }
        }
        mid
    }

    /// Returns whether a directory's chain that ends with `last` can be made to go on
    /// at `first`, so that a check will know where it ended.
    fn may_join(&self, last: u32, first: u32) -> bool {
        !is_split(self.kind, last) || self.worth(self.half_way(last, self.kind.mask(), first)) <= 1
    }

    /// Takes `count` free clusters, chained, with which a directory that ends
    /// with `last` can go on.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_after(&self, last: u32, count: u32) -> Result<Runs> {
        if !is_split(self.kind, last) {
            return self.allocate(count, Some(last));
        }
        let mut passed = Vec::new();
        let first = loop {
            match self.allocate(1, Some(last)) {
                Ok(got) if !got.first().is_some_and(|f| self.may_join(last, f)) => {
                    passed.extend_from_slice(got.as_slice());
                }
                done => break done,
            }
        };
        for run in passed {
            self.free_run(run)?;
        }
        let mut got = first?;
        let Some(rest) = count.checked_sub(1).filter(|&n| n > 0) else {
            return Ok(got);
        };
        let more = self.allocate(rest, got.last()).and_then(|more| {
            let first = got.last().unwrap_or_default();
            self.set_next(first, more.first()).map(|()| more)
        });
        match more {
            Ok(more) => got.append(more),
            Err(e) => {
                for run in got.as_slice() {
                    self.free_run(*run)?;
                }
                return Err(e);
            }
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_of_512_stands_in_two_sectors() {
        let split: Vec<u32> = (0..2000).filter(|&i| is_split(FatKind::Fat12, i)).collect();
        assert_eq!(split, [341, 682, 1365, 1706]);
        assert!(!(0..2000).any(|i| is_split(FatKind::Fat16, i) || is_split(FatKind::Fat32, i)));
    }

    #[test]
    fn half_an_end_is_told_from_other_values() {
        for (index, value, is) in [
            // 4 bits in the lower sector, 8 in the upper one.
            (341, 0xff3, true),
            (341, 0x12f, true),
            (341, 0x128, true),
            (341, 0x127, false),
            (341, 0xfef, true),
            (341, 0xfff, false),
            // 8 bits in the lower sector, 4 in the upper one.
            (682, 0xf12, true),
            (682, 0x1ff, true),
            (682, 0x1f7, false),
            (682, 0xff8, false),
            (340, 0xf12, false),
        ] {
            let found = is_half_an_end(FatKind::Fat12, index, value);
            assert_eq!(found, is, "{index} {value:#x}");
        }
    }
}

//! The copies of the FAT: reading from one what another lacks, and which of
//! them makes sense.

use crate::table::links::{Link, meaning};
use crate::table::segments::UNIT;
use crate::volume::layout::FatKind;
use std::ops::Range;
use volary_core::{BlockDevice, Kind, Result};

/// Fills `buf` from byte `at` of the copy that begins at `first`, sector by sector
/// from `others` where it cannot be read. Returns the bytes at which the sectors of
/// 512 bytes begin that came from others.
///
/// # Errors
/// `Io` where no copy can be read.
pub(crate) fn read(
    dev: &dyn BlockDevice,
    first: u64,
    others: &[u64],
    at: u64,
    buf: &mut [u8],
) -> Result<Vec<u64>> {
    let mut lost = Vec::new();
    match dev.read_at(first + at, buf) {
        Err(e) if e.kind() == Kind::Io => {}
        done => return done.map(|()| lost),
    }
    for (at, part) in (at..).step_by(UNIT).zip(buf.chunks_mut(UNIT)) {
        let mut done = dev.read_at(first + at, part);
        if done.is_err() {
            lost.push(at);
        }
        for other in others.iter().filter(|&&other| other != first) {
            if done.is_err() {
                done = dev.read_at(other + at, part);
            }
        }
        done?;
    }
    Ok(lost)
}

/// Returns the entries whose first byte is in a sector of 512 bytes.
pub(crate) fn entries_of(kind: FatKind, sector: u64) -> Range<u32> {
    let first = |sector: u64| (sector * UNIT as u64 * 8).div_ceil(kind.bits().into()) as u32;
    first(sector)..first(sector + 1)
}

/// How much of one sector makes no sense in one copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nonsense {
    /// Entries that cannot be right.
    pub(crate) entries: u32,
    /// Those of them that are no value of an entry at all.
    pub(crate) values: u32,
    /// Links that can be right.
    pub(crate) links: u32,
    /// How many ends there are if there is nothing else: so many files of one cluster, or a
    /// sector of ones.
    pub(crate) ends_alone: u32,
}

/// Counts the entries of a range that cannot be right: no value of an entry, or a
/// link to the entry itself, to a free cluster, or to one that the cluster before
/// it leads to. Of a range where all are the same link or the same mark of a bad
/// cluster, that is all. Ends alone say nothing: many files of one cluster lie side by side.
/// `get` gives the value of an entry, or nothing where it is not known.
///
/// # Errors
/// What `get` answers.
pub(crate) fn nonsense(
    kind: FatKind,
    last: u32,
    range: Range<u32>,
    mut get: impl FnMut(u32) -> Result<Option<u32>>,
) -> Result<Nonsense> {
    let mut found = Nonsense::default();
    let range = range.start.max(2)..range.end.min(last.saturating_add(1));
    let mut same = Some(None);
    for n in range.clone() {
        let value = get(n)?.unwrap_or(0);
        // The last one of FAT12 may stand in the next sector as well.
        if n + 1 < range.end {
            same = same.filter(|same| same.is_none_or(|same| same == value));
            same = same.map(|_| Some(value));
        }
        let wrong = match meaning(kind, last, value) {
            Link::Wrong(_) => {
                found.values += 1;
                true
            }
            Link::Next(next) => {
                let taken = next != n + 1 && get(next - 1)? == Some(next);
                let wrong = next == n || taken || get(next)? == Some(0);
                found.links += u32::from(!wrong);
                wrong
            }
            Link::Free | Link::End | Link::Bad => false,
        };
        found.entries += u32::from(wrong);
    }
    match same.flatten().map(|value| meaning(kind, last, value)) {
        _ if range.len() <= 8 => {}
        None | Some(Link::Free) => {}
        Some(Link::End) => found.ends_alone = range.len() as u32,
        Some(_) => found.entries = range.len() as u32,
    }
    Ok(found)
}

impl Nonsense {
    /// Returns whether a sector of which this is known holds something else than a FAT,
    /// and the same sector of another copy does not. `differ` entries of the two
    /// differ. After a power cut the first copy may have entries that lead
    /// nowhere, but hardly any that are no values. Nothing but ends is something else where
    /// the other copy, which is another one for the most part, has links that make sense and
    /// nothing that does not.
    pub(crate) fn is_garbage_beside(self, other: Self, differ: u32, clean: bool) -> bool {
        let is_told = other.links > 0 && other.entries == 0;
        if clean && is_told && self.ends_alone > 0 && differ > self.ends_alone / 2 {
            return true;
        }
        let (bad, other) = match clean {
            true => (self.entries, other.entries),
            false => (self.values, other.values),
        };
        bad > 3 && bad / 2 > other && bad.saturating_mul(4) > differ
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u32]) -> Nonsense {
        let get = |n: u32| Ok(values.get(n as usize).copied());
        nonsense(FatKind::Fat16, 5000, 0..values.len() as u32, get).unwrap()
    }

    #[test]
    fn sense_is_told_from_nonsense() {
        let sound = [0xfff8, 0xffff, 3, 4, 0xffff, 0, 0, 0xfff7, 0xffff, 0xffff];
        assert_eq!(of(&sound).entries, 0);
        // To itself, past the end, to a free cluster, into a chain.
        for (value, values) in [(9, 0), (6000, 1), (5, 0), (3, 0)] {
            let mut bytes = sound;
            bytes[9] = value;
            let found = of(&bytes);
            assert_eq!((found.entries, found.values), (1, values), "{value}");
        }
        assert_eq!(of(&[0xfff7; 12]).entries, 10);
        assert_eq!(of(&[0xffff; 12]).entries, 0);
        assert_eq!(of(&[0; 12]).entries, 0);
    }

    #[test]
    fn ends_are_nonsense_only_beside_links() {
        let ends = of(&[0xffff; 12]);
        let chain = of(&[0xfff8, 0xffff, 3, 4, 5, 6, 7, 0xffff, 0, 0, 0, 0]);
        assert!(ends.is_garbage_beside(chain, 9, true));
        assert!(!chain.is_garbage_beside(ends, 9, true));
        for other in [of(&[0; 12]), ends] {
            assert!(!ends.is_garbage_beside(other, 10, true));
        }
        assert!(!ends.is_garbage_beside(chain, 9, false));
    }

    #[test]
    fn each_entry_is_in_one_sector() {
        for kind in [FatKind::Fat12, FatKind::Fat16, FatKind::Fat32] {
            let mut next = 0;
            for sector in 0..20 {
                let range = entries_of(kind, sector);
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(
                u64::from(next),
                (20 * 512 * 8_u64).div_ceil(kind.bits().into())
            );
        }
    }
}

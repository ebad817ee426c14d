//! Which changes of the FAT must reach the disk before others.
//!
//! A disk writes what it was given in any order, so that of two sectors of the
//! FAT it may have the old one and the new one after a power cut. That matters
//! where a chain that the disk leads to is changed in one sector and the
//! clusters behind that place in another:
//!
//! * a *join*: its end leads on now, to clusters that were free;
//! * a *cut*: it ends now, and the clusters behind are free or another's.
//!
//! Then the FAT is written in two steps with a flush between. In the first,
//! joins are ends and what is to be freed is not: chains that the disk leads
//! to only become shorter, and what was free is chained where nothing leads.
//! In the second, all entries are as they are to be. Entries of FAT12 that stand
//! in two sectors take a step of their own before each (see [`halves`](crate::table::halves)).

use crate::table::links::{Link, entry, set_entry};
use crate::table::segments::{Entries, UNIT, differing};
use crate::volume::layout::FatKind;

/// What the disk has of a segment that is to be written.
pub(crate) struct Before {
    bytes: Vec<u8>,
    /// A bit for each entry that was set free since, taken again or not: the
    /// disk leads there by way of a cut, or not at all.
    freed: Bits,
    /// A bit for each entry that a chain was ended at since. It may lead on
    /// again, even to where it led before: what is there is new.
    cut: Bits,
}

/// A set of indices.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn insert(&mut self, index: u32) {
        let word = index as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        if let Some(bits) = self.0.get_mut(word) {
            *bits |= 1 << (index % 64);
        }
    }

    fn contains(&self, index: u32) -> bool {
        let word = self.0.get(index as usize / 64);
        word.is_some_and(|bits| bits >> (index % 64) & 1 != 0)
    }
}

impl Before {
    /// For a segment that is as on the disk.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            freed: Bits::default(),
            cut: Bits::default(),
        }
    }

    /// Returns the segment.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Notes that an entry is set free.
    pub(crate) fn note_freed(&mut self, index: u32) {
        self.freed.insert(index);
    }

    /// Notes that a chain is ended at an entry.
    pub(crate) fn note_cut(&mut self, index: u32) {
        self.cut.insert(index);
    }
}

/// A segment before and after its changes.
pub(crate) struct Change<'a> {
    pub(crate) entries: Entries,
    pub(crate) segment: usize,
    pub(crate) before: &'a Before,
    pub(crate) after: &'a [u8],
    /// A bit for each [`UNIT`] that may have changed.
    pub(crate) dirty: u128,
}

impl Change<'_> {
    /// Returns whether it takes two steps: there is a join or a cut, and not all of
    /// the clusters behind it have their entries in the same sector.
    pub(crate) fn takes_steps(&self) -> bool {
        self.altered().any(|(index, old, new)| {
            old != 0
                && new != 0
                && !self.before.freed.contains(index)
                && (self.leads_off(&self.before.bytes, index, old)
                    || self.leads_off(self.after, index, new))
        })
    }

    /// Returns the segment after the first step, and a bit for each [`UNIT`] in which
    /// the disk has something else.
    pub(crate) fn first_step(&self) -> (Vec<u8>, u128) {
        let mut bytes = self.after.to_vec();
        for (index, old, new) in self.altered() {
            let value = match (self.entries.meaning(old), self.entries.meaning(new)) {
                (Link::Free, _) => continue,
                (_, Link::Free) => old,
                (_, Link::Next(_)) => self.entries.kind.mask(),
                _ => continue,
            };
            set_entry(self.entries.kind, &mut bytes, index, value);
        }
        let units = differing(&self.before.bytes, &bytes);
        (bytes, units)
    }

    /// Returns a bit for each [`UNIT`] that the second step changes.
    pub(crate) fn second_step(&self) -> u128 {
        differing(&self.first_step().0, self.after)
    }

    /// Returns the entries of clusters that have changed, or that chains were ended at:
    /// index, old and new value.
    /// Some may be given twice.
    fn altered(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let kind = self.entries.kind;
        let bits = kind.bits() as usize;
        let (first, end) = self.entries.indices(self.segment);
        (0..128usize)
            .filter(|unit| self.dirty >> unit & 1 != 0)
            .flat_map(move |unit| {
                let from = unit * UNIT * 8 / bits;
                let to = ((unit + 1) * UNIT * 8).div_ceil(bits);
                (from as u32).max(first)..(to as u32).min(end)
            })
            .map(move |index| {
                let old = entry(kind, &self.before.bytes, index);
                (index, old, entry(kind, self.after, index))
            })
            .filter(|(index, old, new)| old != new || self.before.cut.contains(*index))
    }

    /// Returns whether entry `index` with `value` leads to a chain, as `bytes` have
    /// it, of which some entry is not in the same unit.
    fn leads_off(&self, bytes: &[u8], index: u32, value: u32) -> bool {
        let Link::Next(mut at) = self.entries.meaning(value) else {
            return false;
        };
        let unit = self.unit(index);
        // A damaged chain may run in a circle.
        for _ in 0..UNIT {
            let (segment, index) = self.entries.place(at);
            if segment != self.segment || unit.is_none() || self.unit(index) != unit {
                return true;
            }
            match self.entries.meaning(entry(self.entries.kind, bytes, index)) {
                Link::Next(next) => at = next,
                _ => return false,
            }
        }
        true
    }

    /// Returns the unit that an entry is in; `None` if it is in two.
    fn unit(&self, index: u32) -> Option<usize> {
        let index = index as usize;
        let (at, len) = match self.entries.kind {
            FatKind::Fat12 => (index + index / 2, 2),
            FatKind::Fat16 => (index * 2, 2),
            FatKind::Fat32 => (index * 4, 4),
        };
        let unit = at / UNIT;
        ((at + len - 1) / UNIT == unit).then_some(unit)
    }
}

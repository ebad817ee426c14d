//! What a directory's names and slots are, in memory: found by a hash, without
//! a look at the directory.

use crate::names::keys::Scratch;
use crate::names::record::Record;
use crate::names::style::Names;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, is_dots};
use volary_ondisk::NumberMap;

/// Most slots that one entry takes: 20 of a long name and its own.
pub(crate) const SLOTS_MAX: usize = 21;

/// Where an entry stands in its directory, in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first.
    pub(crate) first: u32,
    /// That of the short entry.
    pub(crate) slot: u32,
    /// The last.
    pub(crate) last: u32,
}

impl Span {
    /// Returns how many slots.
    pub(crate) fn len(&self) -> u32 {
        self.last + 1 - self.first
    }

    /// In 32 bits: slot 17, those before it 5, those after it 1.
    fn pack(&self) -> u32 {
        self.slot | (self.slot - self.first) << 17 | (self.last - self.slot) << 22
    }

    fn unpack(packed: u32) -> Self {
        let slot = packed & 0x1_ffff;
        Self {
            first: slot - (packed >> 17 & 31).min(slot),
            slot,
            last: slot + (packed >> 22 & 1),
        }
    }
}

/// The index of one directory.
#[derive(Default)]
pub(crate) struct Index {
    names: Table,
    /// A bit for each slot that is in use.
    used: Vec<u64>,
    /// `hints[n]`: no `n` free slots in a row begin before this slot.
    hints: [u32; SLOTS_MAX + 1],
    /// The slot of the end mark, or the number of slots if there is none.
    pub(crate) end: u32,
    /// Bytes past the end mark are not all zero.
    pub(crate) garbage: bool,
    /// Entries that keep a directory from being empty.
    pub(crate) count: u32,
    /// Numbers to try next in short names, by what comes before the tilde.
    tails: NumberMap<u32>,
}

impl Index {
    /// Returns where entries with this hash of a name stand; some may have another name.
    pub(crate) fn find(&self, hash: u32) -> impl Iterator<Item = Span> + '_ {
        self.names.find(hash).map(Span::unpack)
    }

    /// Adds a name of an entry.
    fn add_name(&mut self, hash: u32, span: Span) {
        self.names.insert(hash, span.pack());
    }

    /// Takes a name of an entry away.
    fn remove_name(&mut self, hash: u32, span: Span) {
        self.names.remove(hash, span.pack());
    }

    /// Takes up a record: its slots, and the names that lead to it.
    pub(crate) fn enter(&mut self, names: &Names, record: &Record<'_>, scratch: &mut Scratch) {
        let span = span_of(record);
        self.take(span.first, span.len());
        if record.short.is_label() || is_dots(&record.short) {
            return;
        }
        self.count += 1;
        names.each_hash(record, scratch, |hash| self.add_name(hash, span));
    }

    /// Takes up an entry whose names have these hashes.
    pub(crate) fn enter_hashed(&mut self, span: Span, name: u32, alias: u32) {
        self.take(span.first, span.len());
        self.count += 1;
        self.add_name(name, span);
        if alias != name {
            self.add_name(alias, span);
        }
    }

    /// Undoes [`enter`](Self::enter).
    pub(crate) fn leave(&mut self, names: &Names, record: &Record<'_>, scratch: &mut Scratch) {
        let span = span_of(record);
        self.release(span);
        self.count = self.count.saturating_sub(1);
        names.each_hash(record, scratch, |hash| self.remove_name(hash, span));
    }

    /// Marks slots as used.
    pub(crate) fn take(&mut self, first: u32, count: u32) {
        for slot in first..first + count {
            let word = (slot / 64) as usize;
            if word >= self.used.len() {
                self.used.resize(word + 1, 0);
            }
            if let Some(bits) = self.used.get_mut(word) {
                *bits |= 1 << (slot % 64);
            }
        }
    }

    /// Marks slots as free.
    pub(crate) fn release(&mut self, span: Span) {
        for slot in span.first..=span.last {
            if let Some(bits) = self.used.get_mut((slot / 64) as usize) {
                *bits &= !(1 << (slot % 64));
            }
        }
        let from = span.first.saturating_sub(SLOTS_MAX as u32);
        for hint in &mut self.hints {
            *hint = (*hint).min(from);
        }
    }

    fn is_used(&self, slot: u32) -> bool {
        let word = self.used.get((slot / 64) as usize).copied().unwrap_or(0);
        word >> (slot % 64) & 1 == 1
    }

    /// Returns the first `count` free slots in a row, below `capacity` or running over
    /// it: those from there on are then still to be made.
    pub(crate) fn find_free(&mut self, count: u32, capacity: u32) -> u32 {
        let n = (count as usize).min(SLOTS_MAX);
        let mut start = self.hints.get(n).copied().unwrap_or(0);
        let mut slot = start;
        while slot < capacity && slot - start < count {
            let word = self.used.get((slot / 64) as usize).copied().unwrap_or(0);
            if word == u64::MAX {
                slot = (slot / 64 + 1) * 64;
                start = slot;
            } else if self.is_used(slot) {
                slot += 1;
                start = slot;
            } else {
                slot += 1;
            }
        }
        let start = start.min(capacity);
        if let Some(hint) = self.hints.get_mut(n) {
            *hint = start;
        }
        start
    }

    /// Returns the number to try next after a tilde, for names with this key.
    pub(crate) fn tail(&self, key: u64) -> Option<u32> {
        self.tails.get(&key).copied()
    }

    /// Sets the number to try next.
    pub(crate) fn set_tail(&mut self, key: u64, next: u32) {
        if self.tails.len() > DIR_ENTRIES_MAX as usize {
            self.tails.clear();
        }
        self.tails.insert(key, next);
    }

    /// Forgets which numbers were tried.
    pub(crate) fn clear_tails(&mut self) {
        self.tails.clear();
    }

    /// Returns bytes of memory, about.
    pub(crate) fn memory(&self) -> u64 {
        let tails = self.tails.capacity() * 16;
        (size_of::<Self>() + self.names.cells.capacity() * 8 + self.used.len() * 8 + tails) as u64
    }
}

/// Returns where a record stands.
pub(crate) fn span_of(record: &Record<'_>) -> Span {
    Span {
        first: record.first_slot,
        slot: record.slot,
        last: record.last_slot,
    }
}

/// Open addressing: pairs of a hash and a packed [`Span`]. A key may be there
/// more than once.
#[derive(Default)]
struct Table {
    cells: Vec<(u32, u32)>,
    /// Cells that are not [`EMPTY`], those of removed pairs with them.
    filled: usize,
    live: usize,
}

/// A cell that never held anything.
const EMPTY: u32 = u32::MAX;
/// A cell whose pair was removed.
const REMOVED: u32 = u32::MAX - 1;

impl Table {
    fn find(&self, hash: u32) -> impl Iterator<Item = u32> + '_ {
        self.probe(hash)
            .map_while(|at| self.cells.get(at))
            .take_while(|c| c.1 != EMPTY)
            .filter(move |c| c.0 == hash && c.1 != REMOVED)
            .map(|c| c.1)
    }

    /// Every cell, from where `hash` belongs.
    fn probe(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let len = self.cells.len();
        let mask = len.wrapping_sub(1);
        (0..len).map(move |i| (hash as usize).wrapping_add(i) & mask)
    }

    fn insert(&mut self, hash: u32, value: u32) {
        if (self.filled + 1) * 4 > self.cells.len() * 3 {
            self.rebuild();
        }
        self.put(hash, value);
    }

    fn put(&mut self, hash: u32, value: u32) {
        for at in self.probe(hash) {
            if let Some(cell) = self.cells.get_mut(at).filter(|c| c.1 == EMPTY) {
                *cell = (hash, value);
                self.filled += 1;
                self.live += 1;
                return;
            }
        }
    }

    fn rebuild(&mut self) {
        let len = ((self.live + 1) * 2).next_power_of_two().max(16);
        let old = std::mem::replace(&mut self.cells, vec![(0, EMPTY); len]);
        self.filled = 0;
        self.live = 0;
        for (hash, value) in old {
            if value < REMOVED {
                self.put(hash, value);
            }
        }
    }

    fn remove(&mut self, hash: u32, value: u32) {
        for at in self.probe(hash) {
            let Some(cell) = self.cells.get_mut(at) else {
                return;
            };
            if cell.1 == EMPTY {
                return;
            }
            if *cell == (hash, value) {
                cell.1 = REMOVED;
                self.live -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u32, slot: u32) -> Span {
        Span {
            first,
            slot,
            last: slot,
        }
    }

    #[test]
    fn what_was_added_is_found_until_it_is_removed() {
        let mut index = Index::default();
        for i in 0..5000 {
            index.add_name(i % 1000, span(i * 3, i * 3 + 2));
        }
        for i in 0..5000 {
            assert!(index.find(i % 1000).any(|s| s == span(i * 3, i * 3 + 2)));
        }
        for i in (0..5000).step_by(2) {
            index.remove_name(i % 1000, span(i * 3, i * 3 + 2));
        }
        for i in 0..5000 {
            let there = index.find(i % 1000).any(|s| s.slot == i * 3 + 2);
            assert_eq!(there, i % 2 == 1, "{i}");
        }
    }

    #[test]
    fn free_slots_are_found_where_they_are() {
        let mut index = Index::default();
        assert_eq!(index.find_free(3, 128), 0);
        index.take(0, 100);
        assert_eq!(index.find_free(3, 128), 100);
        index.release(span(10, 12));
        assert_eq!(index.find_free(3, 128), 10);
        assert_eq!(index.find_free(4, 128), 100);
        index.take(100, 27);
        assert_eq!(
            index.find_free(4, 128),
            127,
            "one slot, and three that are to be made"
        );
        index.take(10, 3);
        assert_eq!(index.find_free(1, 128), 127);
        index.take(127, 1);
        assert_eq!(index.find_free(1, 128), 128);
    }
}

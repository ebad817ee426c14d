//! The page table: groups of 64 consecutive pages, found by their number, and spread over shards
//! with a lock each.

use super::page::{Page, Tally};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pages in a group, one for each bit of a word.
pub(super) const GROUP: u64 = 64;

/// Totals over all shards.
#[derive(Default)]
pub(super) struct Totals {
    /// Pages, including reserved ones.
    pub(super) pages: AtomicUsize,
    /// Pages with a dirty sector in a stage after 0.
    pub(super) held_pages: AtomicUsize,
    /// Dirty sectors of stage 0.
    pub(super) data: AtomicUsize,
    /// Dirty sectors of later stages.
    pub(super) held: AtomicUsize,
}

impl Totals {
    fn apply(&self, before: Tally, after: Tally) {
        let change = |total: &AtomicUsize, from: usize, to: usize| {
            if from != to {
                total.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
            }
        };
        change(&self.data, before.data, after.data);
        change(&self.held, before.held, after.held);
        let is_held = |t: Tally| usize::from(t.held > 0);
        change(&self.held_pages, is_held(before), is_held(after));
    }
}

/// Consecutive pages. A bit of each word stands for a page.
#[derive(Default)]
pub(super) struct Group {
    present: u64,
    /// Pages that were used since the hand of the clock last passed.
    used: u64,
    dirty: u64,
    busy: u64,
    /// The present pages, in order.
    pages: Vec<Page>,
    /// Its place in [`Shard::ring`].
    ring_at: usize,
    /// Whether it is in [`Shard::dirty`].
    listed: bool,
}

impl Group {
    fn rank(&self, bit: u64) -> usize {
        (self.present & (bit - 1)).count_ones() as usize
    }

    /// Returns the page at this index of the group.
    pub(super) fn get(&self, at: u64) -> Option<&Page> {
        let bit = 1 << at;
        (self.present & bit != 0).then(|| &self.pages[self.rank(bit)])
    }

    /// Marks the page as used.
    pub(super) fn touch(&mut self, at: u64) {
        self.used |= self.present & (1 << at);
    }

    /// Returns the first index from `at` on with a page.
    pub(super) fn next_present(&self, at: u64) -> Option<u64> {
        let ahead = self.present >> at;
        (ahead != 0).then(|| at + u64::from(ahead.trailing_zeros()))
    }

    /// Returns the indexes of its dirty pages.
    pub(super) fn dirty_places(&self) -> impl Iterator<Item = u64> + use<> {
        let mut set = self.dirty;
        std::iter::from_fn(move || {
            let at = u64::from((set != 0).then(|| set.trailing_zeros())?);
            set &= set - 1;
            Some(at)
        })
    }

    fn insert(&mut self, at: u64, page: Page) {
        let bit = 1 << at;
        self.pages.insert(self.rank(bit), page);
        self.present |= bit;
        self.used |= bit;
    }

    /// Removes these pages, which must be neither dirty nor busy.
    fn remove(&mut self, set: u64) {
        if set == self.present {
            self.pages.clear();
        } else {
            let mut present = self.present;
            self.pages.retain(|_| {
                let bit = present & present.wrapping_neg();
                present &= !bit;
                set & bit == 0
            });
        }
        self.present &= !set;
        self.used &= !set;
    }
}

/// A part of the page table.
#[derive(Default)]
pub(super) struct Shard {
    groups: HashMap<u64, Group, BuildHasherDefault<NumberHasher>>,
    /// The numbers of the groups, in the order of the clock.
    ring: Vec<u64>,
    hand: usize,
    /// The numbers of groups that may have dirty pages.
    dirty: Vec<u64>,
}

impl Shard {
    pub(super) fn group(&self, number: u64) -> Option<&Group> {
        self.groups.get(&number)
    }

    pub(super) fn group_mut(&mut self, number: u64) -> Option<&mut Group> {
        self.groups.get_mut(&number)
    }

    pub(super) fn get(&self, page: u64) -> Option<&Page> {
        self.groups.get(&(page / GROUP))?.get(page % GROUP)
    }

    /// Inserts a page that is not there yet.
    pub(super) fn insert(&mut self, number: u64, page: Page) {
        let group = self.groups.entry(number / GROUP).or_insert_with(|| {
            self.ring.push(number / GROUP);
            Group {
                ring_at: self.ring.len() - 1,
                ..Group::default()
            }
        });
        group.insert(number % GROUP, page);
    }

    /// Changes a page by `f`, if it is there, and marks it as used. Returns the result of `f`.
    pub(super) fn use_page<R>(
        &mut self,
        totals: &Totals,
        number: u64,
        f: impl FnOnce(&mut Page) -> R,
    ) -> Option<R> {
        self.groups
            .get_mut(&(number / GROUP))?
            .touch(number % GROUP);
        self.change(totals, number, f)
    }

    /// Changes a page by `f`, if it is there, and removes it if it is empty then. Returns the
    /// result of `f`.
    pub(super) fn change<R>(
        &mut self,
        totals: &Totals,
        number: u64,
        f: impl FnOnce(&mut Page) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(&(number / GROUP))?;
        let bit = 1 << (number % GROUP);
        if group.present & bit == 0 {
            return None;
        }
        let at = group.rank(bit);
        let page = &mut group.pages[at];
        let before = page.tally();
        let result = f(page);
        totals.apply(before, page.tally());
        let set = |word: &mut u64, on: bool| if on { *word |= bit } else { *word &= !bit };
        let empty = page.is_empty();
        set(&mut group.dirty, page.dirty() != 0);
        set(&mut group.busy, page.is_busy());
        if group.dirty != 0 && !group.listed {
            group.listed = true;
            self.dirty.push(number / GROUP);
        }
        if empty {
            group.remove(bit);
            totals.pages.fetch_sub(1, Ordering::Relaxed);
            if group.present == 0 {
                let at = group.ring_at;
                self.remove_group(at);
            }
        }
        Some(result)
    }

    /// Removes the group at this index of the ring. The last one moves there.
    fn remove_group(&mut self, ring_at: usize) {
        let number = self.ring.swap_remove(ring_at);
        self.groups.remove(&number);
        let moved = self.ring.get(ring_at).and_then(|n| self.groups.get_mut(n));
        if let Some(group) = moved {
            group.ring_at = ring_at;
        }
    }

    /// Moves the hand of the clock until `want` pages are evicted or the round ends. Pages that
    /// were used since the hand last passed are spared. Returns how many were evicted, and whether
    /// the round ended.
    pub(super) fn evict(&mut self, totals: &Totals, want: usize) -> (usize, bool) {
        let mut out = 0;
        while out < want {
            let number = self.ring.get(self.hand);
            let Some(group) = number.and_then(|n| self.groups.get_mut(n)) else {
                self.hand = 0;
                break;
            };
            let set = group.present & !group.used & !group.dirty & !group.busy;
            group.used = 0;
            group.remove(set);
            out += set.count_ones() as usize;
            match group.present {
                0 => self.remove_group(self.hand),
                _ => self.hand += 1,
            }
        }
        totals.pages.fetch_sub(out, Ordering::Relaxed);
        (out, out < want)
    }

    /// Returns the groups that have dirty pages.
    pub(super) fn dirty_groups(&mut self) -> Vec<u64> {
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let groups = &mut self.groups;
        self.dirty.retain(|n| {
            groups.get_mut(n).is_some_and(|group| {
                group.listed = group.dirty != 0;
                group.listed
            })
        });
        self.dirty.clone()
    }

    /// Returns the numbers of the shard's groups.
    pub(super) fn numbers(&self) -> &[u64] {
        &self.ring
    }
}

/// Mixes the bits of a number, by the finisher of MurmurHash3.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let mut h = self.0 ^ n;
        h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.0 = h ^ (h >> 33);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

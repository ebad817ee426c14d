//! Reservations ahead of files that grow.
//!
//! The blocks of files that grow in turn would alternate on the disk. So an allocator reserves the
//! range behind a file's last unit for that file, as long as others find room elsewhere.
//! Reservations are not stored: the reserved range is free on the disk, and a power cut loses
//! nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The least units that are reserved for a file, if enough are free.
const AHEAD_MIN: u64 = 32;

/// The most bytes that are reserved for a file.
const AHEAD_MAX: u64 = 8 << 20;

/// All reservations of a volume together take at most about one in this many of its free units.
const PART: u64 = 4;

/// Seconds after which an unused reservation is dropped.
const IDLE: i64 = 300;

/// A range that only one file may grow into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The file.
    pub owner: u64,
    /// The unit of the file that belongs at its start.
    pub at: u64,
    /// The first unit on the device.
    pub first: u64,
    /// The number of units.
    pub len: u64,
}

impl Reservation {
    /// Returns the units on the device.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.len)
    }
}

/// The reservations of a volume, a few for each file. No two overlap.
///
/// They guide an allocator, but guarantee nothing. The allocator asks its own map what is free, and
/// drops all reservations before it reports that there is no room.
#[derive(Debug)]
pub struct Reservations {
    by_first: BTreeMap<u64, Kept>,
    /// For each file, the first units of its reservations on the device, the oldest first.
    by_owner: HashMap<u64, Vec<u64>>,
    max: usize,
    each: usize,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    reservation: Reservation,
    /// When it was last used, in seconds.
    used: i64,
}

impl Reservations {
    /// Returns an empty table, for at most `max` reservations, and at most `each` for one file.
    #[must_use]
    pub fn new(max: usize, each: usize) -> Self {
        Self {
            by_first: BTreeMap::new(),
            by_owner: HashMap::new(),
            max,
            each,
        }
    }

    /// Returns how many units to reserve for a file of `size` units. The volume has `free` units of
    /// `unit` bytes. The result is as many as the file has, so that its size doubles, but no more
    /// than its share of the free units.
    #[must_use]
    pub fn ahead(&self, owner: u64, size: u64, free: u64, unit: u64) -> u64 {
        let others = self.by_owner.len() - usize::from(self.by_owner.contains_key(&owner));
        let part = free / PART / (others as u64 + 1);
        let most = part.min(AHEAD_MAX / unit.max(1));
        size.max(AHEAD_MIN).min(most)
    }

    /// Reserves a range for a file from time `now` on. This replaces the file's own reservations
    /// that overlap it, and the file's oldest ones if there are too many. Reservations unused for
    /// five minutes are dropped. If there are still too many, the least recently used one is
    /// dropped. Returns the lowest unit that was freed.
    ///
    /// The range must not overlap another file's.
    pub fn keep(&mut self, reservation: Reservation, now: i64) -> Option<u64> {
        let mut back = self.make_way(&reservation);
        back.iter().for_each(|&first| self.remove(first));
        let expired = self.expired(now);
        expired.iter().for_each(|&first| self.remove(first));
        back.extend(expired);
        let first = reservation.first;
        if reservation.len > 0 && self.max > 0 {
            let all = self.by_owner.entry(reservation.owner).or_default();
            all.push(first);
            let used = now;
            self.by_first.insert(first, Kept { reservation, used });
        }
        back.into_iter().min()
    }

    /// Returns the reservations of the same file that a new one replaces.
    fn make_way(&self, reservation: &Reservation) -> Vec<u64> {
        let own = self.by_owner.get(&reservation.owner);
        let own = own.map(Vec::as_slice).unwrap_or_default();
        let (new, mut stay) = (reservation.range(), Vec::new());
        let mut back = Vec::new();
        for &first in own {
            let kept = self.by_first.get(&first);
            let touches = kept.is_some_and(|kept| {
                let old = kept.reservation.range();
                old.start < new.end && new.start < old.end
            });
            if touches { &mut back } else { &mut stay }.push(first);
        }
        let many = (stay.len() + 1).saturating_sub(self.each.max(1));
        back.extend(stay.into_iter().take(many));
        back
    }

    /// Returns idle reservations, or else the one to drop for a new one.
    fn expired(&self, now: i64) -> Vec<u64> {
        let all = || self.by_first.iter();
        let idle = all().filter(|(_, kept)| now.saturating_sub(kept.used) > IDLE);
        let idle: Vec<u64> = idle.map(|(&first, _)| first).collect();
        if !idle.is_empty() || self.by_first.len() < self.max {
            return idle;
        }
        let oldest = all().min_by_key(|(first, kept)| (kept.used, **first));
        oldest.map(|(&first, _)| first).into_iter().collect()
    }

    fn remove(&mut self, first: u64) {
        let Some(kept) = self.by_first.remove(&first) else {
            return;
        };
        let owner = kept.reservation.owner;
        if let Some(all) = self.by_owner.get_mut(&owner) {
            all.retain(|&other| other != first);
            if all.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// Returns the oldest reservation of a file that fits, and marks it as used at time `now`.
    pub fn use_of(
        &mut self,
        owner: u64,
        now: i64,
        fits: impl Fn(&Reservation) -> bool,
    ) -> Option<Reservation> {
        for first in self.by_owner.get(&owner)? {
            if let Some(kept) = self.by_first.get_mut(first)
                && fits(&kept.reservation)
            {
                kept.used = now;
                return Some(kept.reservation);
            }
        }
        None
    }

    /// Drops a file's reservations. Returns their lowest unit.
    pub fn give_back(&mut self, owner: u64) -> Option<u64> {
        let all = self.by_owner.remove(&owner)?;
        for first in &all {
            self.by_first.remove(first);
        }
        all.into_iter().min()
    }

    /// Drops all reservations. Returns their lowest unit.
    pub fn give_all_back(&mut self) -> Option<u64> {
        let lowest = self.lowest();
        self.by_first.clear();
        self.by_owner.clear();
        lowest
    }

    /// Returns the lowest unit that is reserved for any file.
    #[must_use]
    pub fn lowest(&self) -> Option<u64> {
        self.by_first.keys().next().copied()
    }

    /// Returns the reserved range that unit `at` lies in, if it belongs to a file other than
    /// `owner`.
    #[must_use]
    pub fn others_at(&self, at: u64, owner: Option<u64>) -> Option<Range<u64>> {
        let (_, kept) = self.by_first.range(..=at).next_back()?;
        let range = kept.reservation.range();
        let is_others = Some(kept.reservation.owner) != owner;
        (is_others && range.contains(&at)).then_some(range)
    }

    /// Returns the start of the first range past unit `at` that belongs to a file other than
    /// `owner`. Returns `u64::MAX` if there is none.
    #[must_use]
    pub fn others_above(&self, at: u64, owner: Option<u64>) -> u64 {
        let mut above = self.by_first.range(at.saturating_add(1)..);
        let others = above.find(|(_, kept)| Some(kept.reservation.owner) != owner);
        others.map_or(u64::MAX, |(&first, _)| first)
    }

    /// Returns the end of the last range that begins before unit `at` and belongs to a file other
    /// than `owner`. Returns 0 if there is none.
    #[must_use]
    pub fn others_below(&self, at: u64, owner: Option<u64>) -> u64 {
        let mut below = self.by_first.range(..at).rev();
        let others = below.find(|(_, kept)| Some(kept.reservation.owner) != owner);
        others.map_or(0, |(_, kept)| kept.reservation.range().end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(owner: u64, first: u64, len: u64) -> Reservation {
        Reservation {
            owner,
            at: 0,
            first,
            len,
        }
    }

    #[test]
    fn a_file_passes_over_the_stretches_of_others_and_not_over_its_own() {
        let mut all = Reservations::new(8, 1);
        assert_eq!(all.keep(one(1, 10, 5), 0), None);
        assert_eq!(all.keep(one(2, 20, 5), 0), None);
        assert_eq!(all.others_at(12, Some(1)), None);
        assert_eq!(all.others_at(12, Some(2)), Some(10..15));
        assert_eq!(all.others_at(12, None), Some(10..15));
        assert_eq!(all.others_at(15, None), None);
        assert_eq!(all.others_above(10, Some(1)), 20);
        assert_eq!(all.others_above(10, Some(2)), u64::MAX);
        assert_eq!(all.others_below(30, Some(2)), 15);
        assert_eq!(all.others_below(30, Some(1)), 25);
        assert_eq!(all.give_back(1), Some(10));
        assert_eq!(all.others_at(12, None), None);
        assert_eq!(all.lowest(), Some(20));
    }

    #[test]
    fn what_nobody_has_used_for_long_is_given_back() {
        let mut all = Reservations::new(8, 1);
        all.keep(one(1, 10, 5), 0);
        all.keep(one(2, 20, 5), 0);
        assert!(all.use_of(2, IDLE, |_| true).is_some());
        assert_eq!(all.use_of(1, IDLE, |_| false), None);
        assert_eq!(all.keep(one(3, 30, 5), IDLE + 1), Some(10));
        assert_eq!(all.use_of(1, IDLE + 1, |_| true), None);
        assert!(all.use_of(2, IDLE + 1, |_| true).is_some());
    }

    #[test]
    fn of_too_many_the_oldest_goes() {
        let mut all = Reservations::new(2, 1);
        all.keep(one(1, 10, 5), 1);
        all.keep(one(2, 20, 5), 0);
        assert_eq!(all.keep(one(3, 30, 5), 2), Some(20));
        assert_eq!(all.keep(one(3, 40, 5), 2), Some(30), "its own alone");
        assert!(all.use_of(1, 2, |_| true).is_some());
    }

    #[test]
    fn a_file_has_as_many_as_it_may_and_none_twice() {
        let mut all = Reservations::new(8, 2);
        all.keep(one(1, 10, 5), 0);
        all.keep(one(1, 20, 5), 0);
        assert_eq!(all.keep(one(1, 24, 5), 0), Some(20), "they touch");
        assert_eq!(all.keep(one(1, 40, 5), 0), Some(10), "the oldest");
        assert_eq!(all.others_at(26, None), Some(24..29));
        assert_eq!(all.give_back(1), Some(24));
        assert_eq!(all.lowest(), None);
    }

    #[test]
    fn a_stretch_doubles_with_its_file_up_to_its_part_of_what_is_free() {
        let mut all = Reservations::new(8, 1);
        assert_eq!(all.ahead(1, 1, 1 << 20, 4096), AHEAD_MIN);
        assert_eq!(all.ahead(1, 100, 1 << 20, 4096), 100);
        assert_eq!(all.ahead(1, 1 << 19, 1 << 20, 4096), 2048);
        assert_eq!(all.ahead(1, 100, 80, 4096), 20);
        all.keep(one(2, 20, 5), 0);
        assert_eq!(all.ahead(1, 100, 80, 4096), 10);
        assert_eq!(all.ahead(2, 100, 80, 4096), 20);
        assert_eq!(all.ahead(1, 100, 3, 4096), 0);
    }
}

//! Room kept behind open files that grow, so that files which grow in turns lie in few
//! pieces each.
//!
//! A [`Reservation`] is in memory alone. The allocation map counts its pages as free, and
//! no record and no map on the disk knows of them: a crash loses none. It ends with the
//! last open of its file, and all end when room is short.

use crate::disk::runs::Run;
use std::collections::BTreeMap;

/// Files of up to so many pages are small.
pub(crate) const SMALL: u32 = 8;
/// A file of `n` pages that grows has `n` times so many kept behind it: it has about
/// as many pieces as its size has digits.
const AHEAD: u32 = 4;
/// Fewest pages that are kept behind a big file.
const LEAST: u32 = 64;
/// The part of the free pages that one file may keep: one in so many.
const SHARE: u32 = 4;

/// Pages that are kept for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// Whose they are.
    pub(crate) uid: u64,
    /// Where they are.
    pub(crate) run: Run,
}

/// All reservations, by their first pages. No two have a page in common.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    by_start: BTreeMap<u32, Reservation>,
    starts: BTreeMap<u64, u32>,
}

impl Reservations {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Keeps pages for a file, in place of those that it had. The run must be free, and
    /// in no other reservation.
    pub(crate) fn reserve(&mut self, new: Reservation) {
        self.give_back(new.uid);
        if new.run.len > 0 {
            self.starts.insert(new.uid, new.run.start);
            self.by_start.insert(new.run.start, new);
        }
    }

    /// Ends a file's reservation, and returns where it was.
    pub(crate) fn give_back(&mut self, uid: u64) -> Option<Run> {
        let start = self.starts.remove(&uid)?;
        self.by_start.remove(&start).map(|kept| kept.run)
    }

    /// Ends all reservations.
    pub(crate) fn give_all_back(&mut self) {
        *self = Self::default();
    }

    /// Returns all of them, in the order of their pages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.by_start.values()
    }

    /// Returns the run that holds a page.
    pub(crate) fn holding(&self, page: u32) -> Option<Run> {
        let (_, kept) = self.by_start.range(..=page).next_back()?;
        let holds = page - kept.run.start < kept.run.len;
        holds.then_some(kept.run)
    }

    /// Returns the first page in `from..to` that is kept for a file.
    pub(crate) fn next(&self, from: u32, to: u32) -> Option<u32> {
        if self.holding(from).is_some() {
            return (from < to).then_some(from);
        }
        let next = self.by_start.range(from..).next();
        next.map(|(start, _)| *start).filter(|start| *start < to)
    }

    /// Returns the last page in `from..to` that is kept for a file.
    pub(crate) fn prev(&self, from: u32, to: u32) -> Option<u32> {
        let (_, kept) = self.by_start.range(..to).next_back()?;
        let last = kept.run.start.saturating_add(kept.run.len).min(to) - 1;
        (last >= from).then_some(last)
    }
}

/// Returns how many pages to keep behind a file that grows from `had` pages to `total`, on a volume
/// with `free` ones. None are kept behind what is small at its first write: most such files
/// are whole then.
pub(crate) fn pages_ahead(had: u32, total: u32, free: u32) -> u32 {
    let wanted = match (had, total) {
        (0, ..=SMALL) => 0,
        (_, ..=SMALL) => SMALL,
        _ => total.saturating_mul(AHEAD).max(LEAST),
    };
    wanted.min(free / SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(uid: u64, start: u32, len: u32) -> Reservation {
        let run = Run { start, len };
        Reservation { uid, run }
    }

    #[test]
    fn what_is_kept_is_found_from_both_sides() {
        let mut all = Reservations::default();
        all.reserve(kept(1, 10, 5));
        all.reserve(kept(2, 20, 2));
        assert_eq!(all.next(0, 100), Some(10));
        assert_eq!(all.next(12, 100), Some(12));
        assert_eq!(all.next(15, 100), Some(20));
        assert_eq!(all.next(15, 20), None);
        assert_eq!(all.prev(0, 100), Some(21));
        assert_eq!(all.prev(0, 13), Some(12));
        assert_eq!(all.prev(15, 20), None);
        assert_eq!(all.holding(14).map(|run| run.start), Some(10));
        assert_eq!(all.holding(15), None);
    }

    #[test]
    fn a_file_has_one_reservation_until_it_gives_it_back() {
        let mut all = Reservations::default();
        all.reserve(kept(1, 10, 5));
        all.reserve(kept(1, 40, 5));
        assert_eq!(all.holding(10), None);
        assert_eq!(all.give_back(1), Some(Run { start: 40, len: 5 }));
        assert_eq!(all.give_back(1), None);
        assert!(all.is_empty());
    }
}

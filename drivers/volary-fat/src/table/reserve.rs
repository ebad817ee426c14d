//! Room ahead of files that grow.
//!
//! The paper's allocator lays one file after the other without a gap, "if executed
//! sequentially"; files that grow in turns lay in turns as well. So the clusters behind
//! an open file's last one are kept for it ([`Reservations`](volary_block::Reservations)),
//! and a file that cannot go on where it ends goes on where as many follow each other.
//!
//! A file's first clusters are the lowest that are free, as ever, and nothing is kept
//! behind them: most files are written once and closed.

use crate::table::fat::{Inner, Link, Table, UNKNOWN};
use crate::table::runs::Runs;
use parking_lot::MutexGuard;
use volary_block::Reservation;
use volary_core::Result;

/// Entries of the FAT that a search for a long stretch looks at.
const LOOKS: u32 = 16 << 10;

/// So often a file goes on at the next free cluster, without a search, after a search
/// that found no stretch of a quarter of what was wished for.
const REST: u32 = 16;

/// A file that grows through an open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grower {
    /// The number of its node.
    pub(crate) owner: u64,
    /// How many clusters it has.
    pub(crate) clusters: u32,
    /// The time in seconds.
    pub(crate) now: i64,
}

impl Table {
    /// Takes clusters behind `near` that follow each other there, or, where a file cannot
    /// go on there, the start of a stretch that is as long as what is missing and what is
    /// to be kept for it. May take fewer than `count` in all.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn take_long(
        &self,
        got: &mut Runs,
        count: u32,
        near: u32,
        grower: &Grower,
    ) -> Result<()> {
        let owner = Some(grower.owner);
        while got.clusters() < count {
            let (at, missing) = (got.last().unwrap_or(near), count - got.clusters());
            let len = self.free_behind(at, missing, owner)?;
            let (first, len) = match len {
                0 => {
                    let wish = missing.saturating_add(self.ahead(grower));
                    // Where a part of the FAT cannot be read, no long stretch is.
                    match self.seek(at, wish, owner) {
                        Ok(Some((first, len))) => (first, len.min(missing)),
                        Ok(None) | Err(_) => return Ok(()),
                    }
                }
                len => (at + 1, len),
            };
            let had = got.clusters();
            self.take_up(got, first, len, owner)?;
            if got.clusters() == had {
                // Others were faster.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Keeps what is free behind `last`, its last cluster, for a file that has used up what
    /// was kept for it. Nothing is kept where the FAT cannot be read.
    pub(crate) fn keep_ahead(&self, grower: &Grower, last: u32) {
        let next = last.saturating_add(1);
        let goes_on = |kept: &Reservation| kept.range().contains(&next.into());
        let has_room = {
            let mut inner = self.inner();
            inner
                .kept
                .use_of(grower.owner, grower.now, goes_on)
                .is_some()
        };
        if has_room {
            return;
        }
        let most = self.ahead(grower);
        // Of the last cluster none is asked for.
        let next = next.min(self.last);
        let (segment, index) = self.place(next);
        let Ok(mut inner) = self.lock(segment) else {
            return;
        };
        let len = match next > last {
            true => inner.free_here(self, segment, index, most, Some(grower.owner)),
            false => 0,
        };
        let reservation = Reservation {
            owner: grower.owner,
            at: grower.clusters.into(),
            first: next.into(),
            len: len.into(),
        };
        let back = inner.kept.keep(reservation, grower.now);
        inner.look_from(back);
    }

    /// Gives back what is kept for a file.
    pub(crate) fn give_up(&self, owner: u64) {
        let mut inner = self.inner();
        let back = inner.kept.give_back(owner);
        inner.look_from(back);
    }

    /// Gives back all that is kept; false if there was nothing.
    pub(crate) fn give_all_up(&self) -> bool {
        let mut inner = self.inner();
        let back = inner.kept.give_all_back();
        inner.look_from(back);
        back.is_some()
    }

    /// Returns how many clusters are to be kept for a file.
    fn ahead(&self, grower: &Grower) -> u32 {
        let inner = self.inner();
        // While nobody has counted, a new volume's.
        let free = inner.free_total.unwrap_or(self.last).into();
        let (size, unit) = (grower.clusters.into(), self.cluster_len.into());
        let ahead = inner.kept.ahead(grower.owner, size, free, unit);
        u32::try_from(ahead).unwrap_or(u32::MAX)
    }

    /// Returns how many clusters directly behind `at` are free, up to `most` and the end of the
    /// next cluster's segment.
    fn free_behind(&self, at: u32, most: u32, owner: Option<u64>) -> Result<u32> {
        if at >= self.last {
            return Ok(0);
        }
        let (segment, index) = self.place(at + 1);
        let inner = self.lock(segment)?;
        Ok(inner.free_here(self, segment, index, most, owner))
    }

    /// Returns the first stretch of `wish` free clusters past `near`, else below it; else, with
    /// less, the longest of those that it has looked at.
    fn seek(&self, near: u32, wish: u32, owner: Option<u64>) -> Result<Option<(u32, u32)>> {
        {
            let mut inner = self.inner();
            if inner.rest > 0 {
                inner.rest -= 1;
                return Ok(None);
            }
        }
        let mut search = Search {
            wish,
            owner,
            looks: LOOKS,
            best: None,
        };
        let found = self.seek_up(near, &mut search)? || self.seek_down(near, &mut search)?;
        if !found && search.best.is_none_or(|(_, len)| len < wish / 4) {
            self.inner().rest = REST;
        }
        Ok(search.best)
    }

    fn seek_up(&self, near: u32, search: &mut Search) -> Result<bool> {
        let mut at = near.saturating_add(1);
        while at <= self.last && search.looks > 0 {
            let (segment, index) = self.place(at);
            let base = at - index;
            let (_, end) = self.entries().indices(segment);
            let Some(inner) = self.lock_unless_full(segment)? else {
                at = base.saturating_add(end);
                continue;
            };
            let to = end.min(index.saturating_add(search.looks)) - 1;
            let run = inner.free_above(self, segment, index..=to, search.wish, search.owner);
            drop(inner);
            let next = match run {
                Some((start, len)) if search.note(base + start, len) => return Ok(true),
                Some((start, len)) => start + len,
                None => end,
            };
            search.looked(next - index);
            at = base.saturating_add(next);
        }
        Ok(false)
    }

    fn seek_down(&self, near: u32, search: &mut Search) -> Result<bool> {
        let mut at = near;
        while at >= 2 && search.looks > 0 {
            let (segment, index) = self.place(at);
            let base = at - index;
            let Some(inner) = self.lock_unless_full(segment)? else {
                at = base.saturating_sub(1);
                continue;
            };
            let from = (index + 1).saturating_sub(search.looks);
            let run = inner.free_below(self, segment, from..=index, search.wish, search.owner);
            drop(inner);
            let next = match run {
                Some((start, len)) if search.note(base + start, len) => return Ok(true),
                Some((start, _)) => start,
                None => from,
            };
            search.looked(index + 1 - next);
            at = (base + next).saturating_sub(1);
        }
        Ok(false)
    }

    /// The lock, once a segment is loaded and counted; `None` for one that is full.
    fn lock_unless_full(&self, segment: usize) -> Result<Option<MutexGuard<'_, Inner>>> {
        if self.inner().free.get(segment) == Some(&0) {
            return Ok(None);
        }
        let mut inner = self.lock(segment)?;
        if inner.free.get(segment) == Some(&UNKNOWN) {
            inner.count(self, segment);
        }
        Ok(Some(inner))
    }
}

/// A search for a long stretch.
struct Search {
    wish: u32,
    owner: Option<u64>,
    /// How many entries may still be looked at.
    looks: u32,
    /// The longest stretch so far: its first cluster and its length.
    best: Option<(u32, u32)>,
}

impl Search {
    /// Returns whether a stretch is long enough.
    fn note(&mut self, first: u32, len: u32) -> bool {
        if self.best.is_none_or(|(_, best)| best < len) {
            self.best = Some((first, len));
        }
        len >= self.wish
    }

    fn looked(&mut self, entries: u32) {
        self.looks = self.looks.saturating_sub(entries.max(1));
    }
}

impl Inner {
    /// Looks for the lowest free cluster from `cluster` on, where that is lower.
    fn look_from(&mut self, cluster: Option<u64>) {
        let cluster = cluster.and_then(|cluster| u32::try_from(cluster).ok());
        self.low = cluster.map_or(self.low, |cluster| self.low.min(cluster));
    }

    /// Returns how many clusters are free from this one of a loaded segment on, up to `most`, and
    /// to where another's reservation begins.
    fn free_here(
        &self,
        table: &Table,
        segment: usize,
        index: u32,
        most: u32,
        owner: Option<u64>,
    ) -> u32 {
        let (_, end) = table.entries().indices(segment);
        let at = table.base(segment) + u64::from(index);
        if self.kept.others_at(at, owner).is_some() {
            return 0;
        }
        let above = self.kept.others_above(at, owner) - at;
        let most = u64::from(most).min(above) as usize;
        let is_free = |i: &u32| self.link(table, segment, *i) == Link::Free;
        (index..end).take(most).take_while(is_free).count() as u32
    }
}

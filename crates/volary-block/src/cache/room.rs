//! Room for pages: the bound on memory.

use super::{Cache, SHARDS};
use std::sync::atomic::Ordering;
use volary_core::Result;

/// The least number of pages that are evicted at a time, so that not every new page needs a search.
const EVICT: usize = 32;

impl Cache {
    /// Reserves room for `count` pages. If unwritable dirty pages are in the way, exceeds the
    /// bound, because a read must not fail only because a write did. The pages that it reads are
    /// the first to be evicted.
    pub(super) fn reserve_for_read(&self, count: usize) {
        self.totals.pages.fetch_add(count, Ordering::Relaxed);
        let _ = self.make_room();
    }

    /// Reserves room for `count` pages.
    ///
    /// # Errors
    /// Those of writing back. Nothing is reserved then.
    pub(super) fn reserve_for_write(&self, count: usize) -> Result<()> {
        self.totals.pages.fetch_add(count, Ordering::Relaxed);
        self.make_room().inspect_err(|_| self.give_back(count))
    }

    /// Ends the reservation of pages that were not needed.
    pub(super) fn give_back(&self, count: usize) {
        self.totals.pages.fetch_sub(count, Ordering::Relaxed);
    }

    /// Returns the number of pages beyond the bound.
    fn over(&self) -> usize {
        let held = self.totals.held_pages.load(Ordering::Relaxed);
        let pages = self.totals.pages.load(Ordering::Relaxed);
        pages.saturating_sub(held).saturating_sub(self.capacity)
    }

    /// Returns to the bound as far as possible, after pages that did not count towards it do so
    /// again. The caller holds no lock.
    pub(super) fn trim(&self) {
        let _ = self.make_room();
    }

    /// Does the same as [`trim`](Self::trim), but writes nothing.
    pub(super) fn trim_clean(&self) {
        let over = self.over();
        if over > 0 {
            self.evict(over);
        }
    }

    fn make_room(&self) -> Result<()> {
        loop {
            let over = self.over();
            if over == 0 || self.evict(over.max(EVICT.min(self.capacity / 8))) >= over {
                return Ok(());
            }
            if self.totals.data.load(Ordering::Relaxed) == 0 {
                return Ok(());
            }
            if self.write_back(self.capacity / 4)? == 0 {
                return Ok(());
            }
        }
    }

    /// Evicts about `want` clean pages in the order of the clock. Pages that were used since the
    /// hand last passed are spared once. Returns how many were evicted.
    fn evict(&self, want: usize) -> usize {
        let mut out = 0;
        let mut rounds = 0;
        // A round may begin with the hand at the end of a shard. The first full round clears the
        // marks of use.
        while out < want && rounds < 3 * SHARDS {
            let at = self.clock.load(Ordering::Relaxed);
            let part = &self.shards[at % SHARDS as usize];
            let (n, ended) = part.shard.lock().evict(&self.totals, want - out);
            out += n;
            if ended {
                rounds += 1;
                let next = at.wrapping_add(1);
                let order = Ordering::Relaxed;
                let _ = self.clock.compare_exchange(at, next, order, order);
            }
        }
        out
    }

    /// Writes back a part of stage 0, if much of the memory is dirty with it and no other thread is
    /// doing so. An error is left to the next commit.
    pub(super) fn relieve(&self) {
        let dirty_pages = self.totals.data.load(Ordering::Relaxed) / 8;
        if dirty_pages > self.capacity / 2
            && let Some(writing) = self.writing.try_lock()
        {
            let _ = self.write_back_under(&writing, self.capacity / 4);
        }
    }
}

//! Room: the bound on memory.

use super::{Cache, SHARDS};
use std::sync::atomic::Ordering;
use volary_core::Result;

/// Pages that are evicted at a time, at least, so that not every new page goes
/// looking for one.
const EVICT: usize = 32;

impl Cache {
    /// Makes room for `count` pages, and counts them as there. If dirty pages
    /// are in the way that cannot be written, goes past the bound: a read must
    /// not fail because a write did. The pages it reads are the first to go.
    pub(super) fn reserve_for_read(&self, count: usize) {
        self.totals.pages.fetch_add(count, Ordering::Relaxed);
        let _ = self.make_room();
    }

    /// Makes room for `count` pages, and counts them as there.
    ///
    /// # Errors
    /// Those of writing back, and nothing is counted.
    pub(super) fn reserve_for_write(&self, count: usize) -> Result<()> {
        self.totals.pages.fetch_add(count, Ordering::Relaxed);
        self.make_room().inspect_err(|_| self.give_back(count))
    }

    /// Ends the reservation of pages that were not needed.
    pub(super) fn give_back(&self, count: usize) {
        self.totals.pages.fetch_sub(count, Ordering::Relaxed);
    }

    /// Pages past the bound.
    fn over(&self) -> usize {
        let held = self.totals.held_pages.load(Ordering::Relaxed);
        let pages = self.totals.pages.load(Ordering::Relaxed);
        pages.saturating_sub(held).saturating_sub(self.capacity)
    }

    /// Comes back under the bound, as far as that can be done, after pages that
    /// did not count have become like others. The caller holds no lock.
    pub(super) fn trim(&self) {
        let _ = self.make_room();
    }

    /// As [`trim`](Self::trim), but writes nothing.
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

    /// Evicts clean pages, up to about `want`, as the clock comes to them;
    /// pages used since it came by last are spared once. Gives how many.
    fn evict(&self, want: usize) -> usize {
        let mut out = 0;
        let mut rounds = 0;
        // A round may begin with the hand at the end of a shard, and the first
        // that does not takes away the marks of use.
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

    /// Writes back a part of stage 0 if much of the memory is dirty with it and
    /// nobody is doing so. An error is left for whoever commits.
    pub(super) fn relieve(&self) {
        let dirty_pages = self.totals.data.load(Ordering::Relaxed) / 8;
        if dirty_pages > self.capacity / 2
            && let Some(writing) = self.writing.try_lock()
        {
            let _ = self.write_back_under(&writing, self.capacity / 4);
        }
    }
}

//! Prefetch: reads many ranges into the cache, sorted by their offset on the device.

use super::{Cache, PAGE};

/// The longest gap between ranges that is read with them, in bytes.
const GAP: u64 = 64 << 10;

/// The most ranges in one batch: the depth of a disk's queue.
const QUEUE: usize = 32;

/// The most pages in one batch, which is read into buffers outside of the cache.
const PAGES: u64 = 64;

impl Cache {
    /// Hints that these ranges (offset, length in bytes) will be read soon. Reads what is not cached, by
    /// ascending offset and in batches; merges ranges that are close. Takes half of the cache's memory at most.
    /// Stops once `goes_on` returns false. Ignores errors.
    pub fn prefetch_all(&self, ranges: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        self.prefetch_stretches(self.merged(ranges, GAP), goes_on);
    }

    /// Does the same as [`prefetch_all`](Self::prefetch_all), for scattered ranges. Gaps are not
    /// read, because their pages would waste memory.
    pub fn prefetch_each(&self, ranges: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        self.prefetch_stretches(self.merged(ranges, 0), goes_on);
    }

    fn prefetch_stretches(&self, stretches: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        let mut left = self.memory() / 2 / PAGE as u64;
        let (mut some, mut pages) = (Vec::new(), 0);
        for (first, count) in stretches {
            let count = count.min(left);
            left -= count;
            if !some.is_empty() && (some.len() == QUEUE || pages + count > PAGES) {
                if !goes_on() {
                    return;
                }
                self.load_all(&some);
                some.clear();
                pages = 0;
            }
            if count > PAGES {
                self.prefetch(first * PAGE as u64, count * PAGE as u64);
            } else if count > 0 {
                some.push((first, count));
                pages += count;
            }
        }
        if goes_on() {
            self.load_all(&some);
        }
    }

    /// Returns the pages (first, count) of these ranges, sorted. Merges those at most `gap` bytes apart.
    fn merged(&self, mut ranges: Vec<(u64, u64)>, gap: u64) -> Vec<(u64, u64)> {
        let page = PAGE as u64;
        let device_end = self.size.div_ceil(page);
        ranges.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (at, len) in ranges {
            let first = at / page;
            let end = at.saturating_add(len).div_ceil(page).min(device_end);
            match all.last_mut() {
                Some((start, count)) if first <= *start + *count + gap / page => {
                    *count = (*count).max(end.saturating_sub(*start));
                }
                _ if first < end => all.push((first, end - first)),
                _ => {}
            }
        }
        all
    }
}

//! Prefetch: reads many ranges into the cache, in the order in which they lie.

use super::{Cache, PAGE};

/// Gaps that are read over, in bytes.
const GAP: u64 = 64 << 10;

/// Stretches that the device is asked for at once: as many as disks hold in their queues.
const QUEUE: usize = 32;

/// Pages of these at most: they are read into buffers beside the cache.
const PAGES: u64 = 64;

impl Cache {
    /// A hint that these ranges (their first byte and their length) will be read soon. What is not there is
    /// read now, from the first place on the device to the last, what is close to each other together and some
    /// stretches at once; half of the cache's memory at most. Ends early once `goes_on` says no. Errors are
    /// passed over.
    pub fn prefetch_all(&self, ranges: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        self.prefetch_stretches(self.merged(ranges, GAP), goes_on);
    }

    /// The same for ranges that lie scattered among what is not wanted: no gap is read over, which would
    /// take the memory of pages that nobody asks for.
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

    /// Ranges as stretches of pages (the first one, count) on the device, in order. Those that are at most
    /// `gap` bytes apart are one.
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

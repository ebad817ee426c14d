//! Prefetch: reads many ranges into the cache, in the order in which they lie.

use super::Cache;

/// Gaps that are read over, in bytes.
const GAP: u64 = 64 << 10;

impl Cache {
    /// A hint that these ranges (their first byte and their length) will be read soon. What is not there is
    /// read now, from the first place on the device to the last, what is close to each other together; half of the
    /// cache's memory at most. Ends early once `goes_on` says no. Errors are passed over.
    pub fn prefetch_all(&self, mut ranges: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        ranges.sort_unstable();
        let mut left = self.memory() / 2;
        let mut whole: Option<(u64, u64)> = None;
        let mut read = |range: Option<(u64, u64)>| {
            let Some((start, end)) = range else { return };
            let len = (end - start).min(left);
            if len > 0 && goes_on() {
                left -= len;
                self.prefetch(start, len);
            }
        };
        for (at, len) in ranges {
            let end = at.saturating_add(len);
            whole = match whole {
                Some((start, before)) if at <= before.saturating_add(GAP) => {
                    Some((start, before.max(end)))
                }
                before => {
                    read(before);
                    Some((at, end))
                }
            };
        }
        read(whole);
    }
}

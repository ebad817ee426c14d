//! Prefetch: reads many ranges into the cache, in the order in which they lie.

use super::Cache;

/// Gaps that are read over, in bytes.
const GAP: u64 = 64 << 10;
/// How many spans the device is told of before the first of them is read: it fetches them side by side.
const TOLD: usize = 64;

impl Cache {
    /// A hint that these ranges (their first byte and their length) will be read soon. What is not there is
    /// read now, from the first place on the device to the last, what is close to each other together; half of the
    /// cache's memory at most. Ends early once `goes_on` says no. Errors are passed over.
    pub fn prefetch_all(&self, ranges: Vec<(u64, u64)>, goes_on: &dyn Fn() -> bool) {
        let spans = spans(ranges, self.memory() / 2);
        let mut untold = spans.iter();
        let tell = |(at, len): &(u64, u64)| self.dev.will_read(*at, *len);
        untold.by_ref().take(TOLD).for_each(tell);
        for &(at, len) in &spans {
            if !goes_on() {
                return;
            }
            self.prefetch(at, len);
            untold.by_ref().take(1).for_each(tell);
        }
    }
}

/// Ranges in order, those close to each other joined; the first of them, up to `max` bytes in all.
fn spans(mut ranges: Vec<(u64, u64)>, max: u64) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (at, len) in ranges {
        let end = at.saturating_add(len);
        match spans.last_mut() {
            Some((start, len)) if at <= start.saturating_add(*len).saturating_add(GAP) => {
                *len = (*len).max(end - *start);
            }
            _ => spans.push((at, len)),
        }
    }
    let mut left = max;
    for (_, len) in &mut spans {
        *len = (*len).min(left);
        left -= *len;
    }
    spans.retain(|(_, len)| *len > 0);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CacheOptions;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use volary_core::{BlockDevice, Geometry, Result};

    #[test]
    fn close_ranges_are_one_span_and_all_fit_the_bound() {
        let far = 10 * GAP;
        let ranges = vec![(far, 100), (5, 10), (20, 8), (0, 12)];
        assert_eq!(spans(ranges.clone(), 1000), [(0, 28), (far, 100)]);
        assert_eq!(spans(ranges.clone(), 60), [(0, 28), (far, 32)]);
        assert_eq!(spans(ranges, 20), [(0, 20)]);
        assert_eq!(
            spans(vec![(u64::MAX, 9), (u64::MAX - 1, 9)], 1),
            [(u64::MAX - 1, 1)]
        );
    }

    /// Notes what it is told and asked.
    #[derive(Default)]
    struct Noting(Mutex<Vec<(char, u64)>>);

    impl BlockDevice for Noting {
        fn geometry(&self) -> Geometry {
            Geometry {
                size: 1 << 30,
                sector: 512,
                read_only: true,
            }
        }

        fn read_at(&self, offset: u64, _: &mut [u8]) -> Result<()> {
            self.0.lock().push(('r', offset / (4 * GAP)));
            Ok(())
        }

        fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }

        fn will_read(&self, offset: u64, _: u64) {
            self.0.lock().push(('t', offset / (4 * GAP)));
        }
    }

    #[test]
    fn a_device_is_told_of_all_that_comes_next_and_reads_it_in_order() {
        let device = Arc::new(Noting::default());
        let below: Arc<dyn BlockDevice> = device.clone();
        let cache = Cache::new(below, CacheOptions::default());
        let count = TOLD as u64 + 10;
        let ranges = (0..count).rev().map(|n| (n * 4 * GAP, 512)).collect();
        cache.prefetch_all(ranges, &|| true);
        let noted = device.0.lock();
        let of = |kind| {
            noted
                .iter()
                .filter(move |(k, _)| *k == kind)
                .map(|(_, n)| *n)
        };
        assert!(of('r').eq(0..count) && of('t').eq(0..count));
        let first = noted.iter().position(|(kind, _)| *kind == 'r');
        assert_eq!(first, Some(TOLD));
    }
}

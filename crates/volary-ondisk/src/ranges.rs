//! [`Ranges`]: a set of blocks in use, as ranges.

use std::collections::BTreeMap;

/// Ranges of blocks that do not overlap. Adjacent ranges are merged, so memory and work depend on
/// the number of ranges, not on their lengths.
#[derive(Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Takes `count` blocks from `first` on. Returns false, and takes nothing, if one of them is
    /// taken.
    pub fn take(&mut self, first: u64, count: u64) -> bool {
        let Some(end) = first.checked_add(count) else {
            return false;
        };
        let before = self.0.range(..=first).next_back().map(|(a, b)| (*a, *b));
        let after = self.0.range(first..).next().map(|(a, b)| (*a, *b));
        let is_taken =
            before.is_some_and(|(_, to)| to > first) || after.is_some_and(|(from, _)| from < end);
        if is_taken {
            return false;
        }
        let start = match before {
            Some((from, to)) if to == first => from,
            _ => first,
        };
        let stop = match after {
            Some((from, to)) if from == end => {
                self.0.remove(&from);
                to
            }
            _ => end,
        };
        self.0.insert(start, stop);
        true
    }

    /// Calls `each` with the parts of a range that are not taken, in order: the first block and the
    /// number of blocks.
    pub fn gaps(&self, first: u64, count: u64, mut each: impl FnMut(u64, u64)) {
        let end = first.saturating_add(count);
        let before = self.0.range(..first).next_back();
        let mut at = before.map_or(first, |(_, to)| first.max(*to));
        for (from, to) in self.0.range(first..end) {
            if *from > at {
                each(at, *from - at);
            }
            at = at.max(*to);
        }
        if at < end {
            each(at, end - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_once() {
        let mut ranges = Ranges::default();
        assert!(ranges.take(10, 5) && ranges.take(20, 5) && ranges.take(15, 5));
        assert_eq!(ranges.0, BTreeMap::from([(10, 25)]));
        for (first, count) in [(9, 2), (10, 1), (24, 1), (0, 100), (12, 3), (u64::MAX, 2)] {
            assert!(!ranges.take(first, count), "{first} {count}");
        }
        assert!(ranges.take(25, 1) && ranges.take(9, 1));
        assert_eq!(ranges.0, BTreeMap::from([(9, 26)]));
    }

    #[test]
    fn gaps_are_what_nobody_has() {
        let mut ranges = Ranges::default();
        assert!(ranges.take(10, 5) && ranges.take(20, 5));
        let gaps = |first, count| {
            let mut all = Vec::new();
            ranges.gaps(first, count, |first, count| all.push((first, count)));
            all
        };
        assert_eq!(gaps(0, 30), [(0, 10), (15, 5), (25, 5)]);
        assert_eq!(gaps(12, 10), [(15, 5)]);
        assert_eq!(gaps(10, 5), []);
        assert_eq!(gaps(15, 2), [(15, 2)]);
        assert_eq!(gaps(24, u64::MAX), [(25, u64::MAX - 25)]);
    }
}

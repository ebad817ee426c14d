//! [`Ranges`]: which blocks are taken.

use std::collections::BTreeMap;

/// Ranges of blocks that do not overlap. Neighbours become one.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Takes `count` blocks from `first` on. Returns false, and takes none, if one is taken already.
    pub(crate) fn take(&mut self, first: u64, count: u64) -> bool {
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
}

//! The free stretches of a volume, for placing whole files.

use std::collections::BTreeMap;

/// Free stretches, by their first cluster.
#[derive(Debug, Default)]
pub(super) struct Free(BTreeMap<u32, u32>);

impl Free {
    /// Adds a stretch that is in none; it grows together with its neighbours.
    pub(super) fn give(&mut self, first: u32, len: u32) {
        let (mut first, mut len) = (first, len);
        if let Some((&before, &before_len)) = self.0.range(..first).next_back()
            && before + before_len == first
        {
            first = before;
            len += before_len;
        }
        if let Some(after_len) = self.0.remove(&(first + len)) {
            len += after_len;
        }
        self.0.insert(first, len);
    }

    /// Takes `len` clusters from `first` on out of the stretch that they are
    /// in. That may begin before them: it grows when others are given back.
    pub(super) fn take(&mut self, first: u32, len: u32) {
        let Some((&start, &had)) = self.0.range(..=first).next_back() else {
            return;
        };
        let (end, taken_end) = (start + had, first + len);
        if taken_end > end {
            return;
        }
        self.0.remove(&start);
        if start < first {
            self.0.insert(start, first - start);
        }
        if taken_end < end {
            self.0.insert(taken_end, end - taken_end);
        }
    }

    /// Returns where the lowest stretch of at least `len` clusters starts, below `end`.
    pub(super) fn lowest(&self, len: u32, end: u32) -> Option<u32> {
        let fits = self.0.range(..end).find(|stretch| *stretch.1 >= len);
        fits.map(|stretch| *stretch.0)
    }

    /// Returns the stretch that ends just before `cluster`: its start.
    pub(super) fn just_below(&self, cluster: u32) -> Option<u32> {
        let (&first, &len) = self.0.range(..cluster).next_back()?;
        (first + len == cluster).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::Free;

    #[test]
    fn stretches_grow_together_and_shrink() {
        let mut free = Free::default();
        free.give(10, 2);
        free.give(14, 2);
        free.give(12, 2);
        assert_eq!(free.lowest(6, 100), Some(10));
        assert_eq!(free.lowest(7, 100), None);
        assert_eq!(free.just_below(16), Some(10));
        free.take(10, 4);
        assert_eq!(free.lowest(1, 100), Some(14));
        assert_eq!(free.lowest(1, 14), None);
        free.give(10, 4);
        free.take(12, 2);
        assert_eq!(free.lowest(2, 100), Some(10));
        assert_eq!(free.just_below(12), Some(10));
        assert_eq!(free.lowest(1, 100), Some(10));
        free.take(10, 2);
        assert_eq!(free.lowest(1, 100), Some(14));
    }
}

//! A bit for each cluster.

/// A set of cluster numbers.
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Empty, for numbers up to `last`.
    pub(super) fn new(last: u32) -> Self {
        Self {
            words: vec![0; last as usize / 64 + 1],
        }
    }

    /// Returns whether `n` is in it.
    pub(super) fn has(&self, n: u32) -> bool {
        let word = self.words.get(n as usize / 64);
        word.is_some_and(|w| w >> (n % 64) & 1 == 1)
    }

    /// Adds `n`; whether it was not in it. A number past the last is never
    /// taken.
    pub(super) fn add(&mut self, n: u32) -> bool {
        let Some(word) = self.words.get_mut(n as usize / 64) else {
            return false;
        };
        let bit = 1 << (n % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Returns the numbers from 64 `i` on, the first in the lowest bit.
    pub(super) fn word(&self, i: usize) -> u64 {
        self.words.get(i).copied().unwrap_or(0)
    }

    /// Returns how many words there are.
    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }

    /// Returns how many numbers are in it.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn a_number_is_new_once() {
        let mut bits = Bits::new(200);
        assert!(bits.add(130) && !bits.add(130) && bits.has(130));
        assert_eq!((bits.word(2), bits.word_count(), bits.count()), (4, 4, 1));
        assert!(!bits.add(1000) && !bits.has(1000));
    }
}

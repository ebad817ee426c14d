//! [`Bits`]: a set of numbers of blocks.

use std::collections::HashMap;

/// Bits of a word, and of a part.
const WORD: u64 = 64;
const PART: u64 = 8 * WORD;

/// The most parts, which bounds the memory of a set: a part and its number take 72 bytes.
const PARTS_MAX: usize = 1 << 24;

/// A set of numbers, such as block numbers of a volume. Its memory depends on how many numbers it
/// holds, not on how large they are: an image with holes can claim any size.
#[derive(Debug, Default)]
pub struct Bits {
    parts: HashMap<u64, [u64; 8]>,
    is_full: bool,
}

impl Bits {
    /// Adds a number. Returns false if the set had it already. If the set is full, drops a number
    /// outside its parts and returns true.
    pub fn insert(&mut self, number: u64) -> bool {
        let (at, mask) = place(number);
        if self.parts.len() >= PARTS_MAX && !self.parts.contains_key(&(number / PART)) {
            self.is_full = true;
            return true;
        }
        let part = self.parts.entry(number / PART).or_default();
        let Some(word) = part.get_mut(at) else {
            return false;
        };
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    /// Returns whether a number was added.
    pub fn has(&self, number: u64) -> bool {
        let (at, mask) = place(number);
        let word = self.parts.get(&(number / PART)).and_then(|p| p.get(at));
        word.is_some_and(|word| word & mask != 0)
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns whether a number was dropped for want of room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

/// Returns the index of the word in its part that holds a number, and the mask of its bit.
fn place(number: u64) -> (usize, u64) {
    let within = number % PART;
    ((within / WORD) as usize, 1 << (within % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_and_takes_little_room() {
        let mut bits = Bits::default();
        assert!(bits.is_empty());
        for number in [0, 63, 64, 511, 512, u64::MAX] {
            assert!(!bits.has(number));
            assert!(bits.insert(number) && !bits.insert(number) && bits.has(number));
        }
        assert!(!bits.has(1) && !bits.has(u64::MAX - 1) && !bits.is_full());
        assert_eq!(bits.parts.len(), 3);
    }
}

//! A bit for each cluster of the volume; room is taken for those that are set only.

use std::collections::HashMap;

/// Bits of one part.
const PART: u64 = 4096 * 8;

/// A set of numbers.
#[derive(Default)]
pub(crate) struct Bits(HashMap<u64, Vec<u8>>);

impl Bits {
    /// Adds a number. False if it was there.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        let part = self.0.entry(number / PART);
        let part = part.or_insert_with(|| vec![0; (PART / 8) as usize]);
        let within = number % PART;
        match usize::try_from(within / 8)
            .ok()
            .and_then(|at| part.get_mut(at))
        {
            None => false,
            Some(byte) => {
                let mask = 1 << (within % 8);
                let is_new = *byte & mask == 0;
                *byte |= mask;
                is_new
            }
        }
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        let part = self.0.get(&(number / PART));
        part.is_some_and(|part| crate::scan::bit(part, number % PART))
    }
}

//! Hash maps with numbers as keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes numbers with one multiplication each.
///
/// It does not withstand keys that an attacker chooses to collide. Use it for tables whose size is
/// bounded.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(b.into());
        }
    }
    fn write_u64(&mut self, n: u64) {
        // Folds the product, as its low bits depend on the low bits of `n` alone.
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A map with numbers as keys.
pub type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_far_apart() {
        let hash = |n: u64| {
            let mut spread = Spread::default();
            spread.write_u64(n);
            spread.finish()
        };
        // A hash table takes the bucket from the low bits and a tag from the high ones.
        for step in [1, 1 << 17, 1 << 32, 1 << 46] {
            let low: std::collections::HashSet<_> =
                (0..1000).map(|n| hash(n * step) & 0xffff).collect();
            let high: std::collections::HashSet<_> =
                (0..1000).map(|n| hash(n * step) >> 57).collect();
            assert!(low.len() > 900, "{step}: {}", low.len());
            assert!(high.len() > 100, "{step}: {}", high.len());
        }
    }
}

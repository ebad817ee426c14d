//! A map of bounded size.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Keeps recently used entries: at least the last `max`/2, and at most `max`. In addition, keeps
/// all entries that must be kept.
pub(crate) struct Bounded<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Bounded<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: (max / 2).max(1),
        }
    }

    pub(crate) fn get(&mut self, key: &K, keep: impl Fn(&V) -> bool) -> Option<V> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let found = self.old.remove(key)?;
        self.insert(key.clone(), found.clone(), keep);
        Some(found)
    }

    /// Inserts an entry. Makes room by dropping old entries, except those that `keep` selects.
    pub(crate) fn insert(&mut self, key: K, value: V, keep: impl Fn(&V) -> bool) {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            let mut kept = mem::take(&mut self.old);
            kept.retain(|_, v| keep(v));
            self.old = mem::take(&mut self.young);
            self.young = kept;
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peek(map: &Bounded<u32, u32>, key: &u32) -> Option<u32> {
        map.young.get(key).or_else(|| map.old.get(key)).copied()
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut map = Bounded::new(8);
        let keep = |v: &u32| *v == 0;
        for n in 0..100_u32 {
            map.insert(n, n, keep);
            assert_eq!(map.get(&1, keep), (n >= 1).then_some(1), "{n}");
        }
        assert_eq!(peek(&map, &0), Some(0), "kept");
        assert_eq!(peek(&map, &50), None);
        assert_eq!(peek(&map, &99), Some(99));
        assert!(map.young.len() + map.old.len() <= 9);
        assert_eq!((map.remove(&99), map.remove(&99)), (Some(99), None));
    }

    #[test]
    fn more_than_fits_can_be_kept() {
        let mut map = Bounded::new(2);
        for n in 0..50 {
            map.insert(n, n, |_| true);
        }
        assert!((0..50).all(|n| peek(&map, &n) == Some(n)));
    }
}

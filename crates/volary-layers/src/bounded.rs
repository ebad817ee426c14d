//! A map of bounded size.

use std::collections::HashMap;
use std::hash::Hash;

/// A map that forgets entries not used recently, in two generations. When the young generation
/// reaches half of the bound, it becomes the old one, and the previous old one is dropped. An entry
/// that is used returns to the young one.
pub(crate) struct Bounded<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    weight: usize,
    max: usize,
    weigh: fn(&V) -> usize,
}

impl<K: Eq + Hash + Clone, V> Bounded<K, V> {
    /// Makes an empty map for a total weight of at most `max`, by `weigh`.
    pub(crate) fn new(max: usize, weigh: fn(&V) -> usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            weight: 0,
            max,
            weigh,
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.insert(key.clone(), value);
        }
        self.young.get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.grew((self.weigh)(&value));
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Adds to the weight, since a value has grown or is about to be inserted.
    pub(crate) fn grew(&mut self, by: usize) {
        self.weight = self.weight.saturating_add(by);
        if self.weight > self.max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.weight = by;
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.weight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Bounded;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut map = Bounded::new(100, |_: &u32| 1);
        for key in 0..10_000 {
            map.insert(key, key);
            assert_eq!(map.get(&0).copied(), Some(0));
            assert!(map.young.len() + map.old.len() <= 100);
        }
        assert!(map.get(&1).is_none());
        assert!(map.get(&9_990).is_some());
        map.remove(&0);
        assert!(map.get(&0).is_none());
    }
}

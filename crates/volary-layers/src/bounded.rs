//! A map that stays within a bound.

use std::collections::HashMap;
use std::hash::Hash;

/// A map that forgets what was not used for longest, in two generations: when
/// the young one has half of the bound, it becomes the old one, and what was old
/// is forgotten. What is used comes back to the young one.
pub(crate) struct Bounded<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    weight: usize,
    max: usize,
    weigh: fn(&V) -> usize,
}

impl<K: Eq + Hash + Clone, V> Bounded<K, V> {
    /// Empty, for at most `max` of what `weigh` counts.
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

    /// A value has become so much heavier, or is about to come.
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

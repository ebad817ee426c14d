//! A bounded memory of recent calls, with a share for each party.

use crate::timer;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};
use volary_session::Party;

/// The limits of such a memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) all: usize,
    pub(crate) of_party: usize,
    /// Older values are forgotten when their party adds a new one.
    pub(crate) age: Duration,
}

/// Values by keys, each remembered for a party. If there are too many, the party with the most
/// loses its oldest one. So no party makes another forget anything as long as that one has fewer.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    bounds: Bounds,
    values: HashMap<K, V>,
    /// The keys of each party that has any, from oldest to newest.
    orders: HashMap<Party, VecDeque<(Instant, K)>>,
}

impl<K: Copy + Eq + Hash, V> Recent<K, V> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            values: HashMap::new(),
            orders: HashMap::new(),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key)
    }

    /// Remembers a value for this party; an existing key gets the new value instead.
    pub(crate) fn insert(&mut self, party: Party, key: K, value: V) {
        if let Some(former) = self.values.get_mut(&key) {
            *former = value;
            return;
        }
        let (now, bounds) = (timer::now(), self.bounds);
        self.forget(party, |len, since| {
            len >= bounds.of_party || now.duration_since(since) >= bounds.age
        });
        if self.values.len() >= bounds.all {
            let lens = self
                .orders
                .iter()
                .map(|(party, order)| (order.len(), *party));
            if let Some((most, greediest)) = lens.max_by_key(|(len, _)| *len) {
                self.forget(greediest, |len, _| len >= most);
            }
        }
        self.values.insert(key, value);
        self.orders.entry(party).or_default().push_back((now, key));
    }

    /// Forgets the value of this key, which belongs to this party.
    pub(crate) fn remove(&mut self, party: Party, key: &K) {
        self.values.remove(key);
        if let Entry::Occupied(mut order) = self.orders.entry(party) {
            order.get_mut().retain(|(_, other)| other != key);
            if order.get().is_empty() {
                order.remove();
            }
        }
    }

    /// Forgets a party's oldest values as long as `is_surplus` says so, given their number and the
    /// time of the oldest.
    fn forget(&mut self, party: Party, is_surplus: impl Fn(usize, Instant) -> bool) {
        let Entry::Occupied(mut order) = self.orders.entry(party) else {
            return;
        };
        while let Some((since, key)) = order.get().front()
            && is_surplus(order.get().len(), *since)
        {
            self.values.remove(key);
            order.get_mut().pop_front();
        }
        if order.get().is_empty() {
            order.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        all: 10,
        of_party: 6,
        age: Duration::MAX,
    };

    fn is_bounded(recent: &Recent<u32, ()>) {
        let lens = recent.orders.values().map(VecDeque::len);
        assert!(lens.clone().all(|len| (1..=6).contains(&len)));
        assert_eq!(lens.sum::<usize>(), recent.values.len());
        assert!(recent.values.len() <= 10);
    }

    #[test]
    fn who_remembers_little_forgets_nothing_for_who_has_much() {
        let mut recent = Recent::new(BOUNDS);
        recent.insert(Party::User(9), 0, ());
        for key in 1..100 {
            recent.insert(Party::User(key % 3), key, ());
            is_bounded(&recent);
        }
        assert_eq!(recent.values.len(), 10);
        assert!(recent.get(&0).is_some() && recent.get(&99).is_some());
        recent.remove(Party::User(9), &0);
        assert!(recent.get(&0).is_none());
        is_bounded(&recent);
    }

    #[test]
    fn the_oldest_of_a_party_goes_first() {
        let mut recent = Recent::new(BOUNDS);
        for key in 0..7 {
            recent.insert(Party::User(1), key, ());
        }
        recent.insert(Party::User(1), 1, ());
        assert_eq!(recent.get(&0), None);
        assert!((1..7).all(|key| recent.get(&key).is_some()));
        is_bounded(&recent);
    }

    #[test]
    fn what_is_old_goes_when_there_is_something_new() {
        let mut recent = Recent::new(Bounds {
            age: Duration::ZERO,
            ..BOUNDS
        });
        for key in 0..3 {
            recent.insert(Party::User(1), key, ());
            is_bounded(&recent);
        }
        assert_eq!((recent.get(&1), recent.get(&2)), (None, Some(&())));
    }
}

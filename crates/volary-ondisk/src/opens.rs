//! The open table: which opens a volume has.
//!
//! An [`OpenId`] is the index of a slot (lower 32 bits) and the slot's use count (upper 32 bits).
//! So the table finds an open without hashing its id, and never gives an id twice: a slot that was
//! used 2^32 - 1 times is retired. An id that was never given, or whose open has ended, is `Stale`.
//!
//! The table also counts the opens of each node, so that an open and its count change at once. A
//! driver that removes a node's last name asks [`is_open`](Opens::is_open). An open node keeps its
//! content until [`remove`](Opens::remove) reports that the last open has ended. The driver must
//! hold one lock of its own over both the question and its reaction.
//!
//! The driver chooses where the counts are kept. They are in the table, by node number
//! ([`ByNumber`]), or in nodes that it keeps in memory while they are open ([`Count`]). The latter
//! saves two look-ups.
//!
//! [`Opens`] is for drivers whose state is behind one lock, [`SharedOpens`] for those that work in
//! parallel.

use crate::NumberMap;
use parking_lot::RwLock;
use std::collections::hash_map::Entry;
use volary_core::{Kind, OpenId, Result};

/// The opens of a volume, with a `T` for each.
#[derive(Debug)]
pub struct Opens<T, C = ByNumber> {
    slots: Vec<Slot<T>>,
    /// Indexes of slots that can be reused.
    free: Vec<u32>,
    counts: C,
}

/// Counts the opens of each node.
pub trait Count<T> {
    /// Counts one more open of `node`.
    fn up(&mut self, node: u64, open: &T);

    /// Counts one open of `node` less; returns whether it was the last.
    fn down(&mut self, node: u64, open: &T) -> bool;
}

/// Counts opens by the numbers of their nodes.
#[derive(Debug, Default)]
pub struct ByNumber(NumberMap<u32>);

impl<T> Count<T> for ByNumber {
    fn up(&mut self, node: u64, _: &T) {
        *self.0.entry(node).or_default() += 1;
    }

    fn down(&mut self, node: u64, _: &T) -> bool {
        let Entry::Occupied(mut count) = self.0.entry(node) else {
            return true;
        };
        if *count.get() > 1 {
            *count.get_mut() -= 1;
            return false;
        }
        count.remove();
        true
    }
}

#[derive(Debug)]
struct Slot<T> {
    /// How many opens the slot has had.
    uses: u32,
    /// The node's number, and the driver's data.
    open: Option<(u64, T)>,
}

/// An open that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<T> {
    /// The number of its node.
    pub node: u64,
    /// The driver's data.
    pub open: T,
    /// Whether the node has no other open.
    pub is_last: bool,
}

impl<T, C: Default> Default for Opens<T, C> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            counts: C::default(),
        }
    }
}

impl<T, C: Count<T>> Opens<T, C> {
    /// Adds an open of the node with the number `node`; returns its id.
    pub fn add(&mut self, node: u64, open: T) -> OpenId {
        self.counts.up(node, &open);
        let index = self.free.pop().unwrap_or_else(|| self.add_slot());
        let mut uses = 0;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.uses += 1;
            slot.open = Some((node, open));
            uses = slot.uses;
        }
        OpenId(u64::from(uses) << 32 | u64::from(index))
    }

    /// Adds a slot; returns its index. Memory runs out long before 2^32 of them.
    fn add_slot(&mut self) -> u32 {
        let index = self.slots.len();
        self.slots.push(Slot {
            uses: 0,
            open: None,
        });
        index as u32
    }

    /// Returns the driver's data of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub fn get(&self, id: OpenId) -> Result<&T> {
        let (uses, index) = parts(id);
        let slot = self.slots.get(index).filter(|slot| slot.uses == uses);
        let open = slot.and_then(|slot| slot.open.as_ref());
        open.map(|(_, open)| open).ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the driver's data of an open, for changes.
    ///
    /// # Errors
    /// `Stale`.
    pub fn get_mut(&mut self, id: OpenId) -> Result<&mut T> {
        let (uses, index) = parts(id);
        let slot = self.slots.get_mut(index).filter(|slot| slot.uses == uses);
        let open = slot.and_then(|slot| slot.open.as_mut());
        open.map(|(_, open)| open).ok_or_else(|| Kind::Stale.into())
    }

    /// Ends an open.
    ///
    /// # Errors
    /// `Stale`.
    pub fn remove(&mut self, id: OpenId) -> Result<Closed<T>> {
        let (uses, index) = parts(id);
        let slot = self.slots.get_mut(index).filter(|slot| slot.uses == uses);
        let open = slot.and_then(|slot| slot.open.take());
        let (node, open) = open.ok_or(Kind::Stale)?;
        if uses < u32::MAX {
            self.free.push(index as u32);
        }
        Ok(Closed {
            node,
            is_last: self.counts.down(node, &open),
            open,
        })
    }

    /// Ends all opens. Returns the numbers of the nodes that were open, in order.
    pub fn clear(&mut self) -> Vec<u64> {
        let mut nodes = Vec::new();
        for (slot, index) in self.slots.iter_mut().zip(0..) {
            let Some((node, open)) = slot.open.take() else {
                continue;
            };
            if self.counts.down(node, &open) {
                nodes.push(node);
            }
            if slot.uses < u32::MAX {
                self.free.push(index);
            }
        }
        nodes.sort_unstable();
        nodes
    }
}

impl<T> Opens<T> {
    /// Returns whether the node with the number `node` has an open.
    pub fn is_open(&self, node: u64) -> bool {
        self.counts.0.contains_key(&node)
    }
}

/// Splits an id into the use count and the index of its slot.
fn parts(id: OpenId) -> (u32, usize) {
    ((id.0 >> 32) as u32, (id.0 & 0xffff_ffff) as usize)
}

/// [`Opens`] behind a lock of its own. No other lock is taken while it is held.
#[derive(Debug)]
pub struct SharedOpens<T, C = ByNumber>(RwLock<Opens<T, C>>);

impl<T, C: Default> Default for SharedOpens<T, C> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Clone, C: Count<T>> SharedOpens<T, C> {
    /// Adds an open of the node with the number `node`; returns its id.
    pub fn add(&self, node: u64, open: T) -> OpenId {
        self.0.write().add(node, open)
    }

    /// Returns a copy of the driver's data of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub fn get(&self, id: OpenId) -> Result<T> {
        self.0.read().get(id).cloned()
    }

    /// Ends an open.
    ///
    /// # Errors
    /// `Stale`.
    pub fn remove(&self, id: OpenId) -> Result<Closed<T>> {
        self.0.write().remove(id)
    }

    /// Ends all opens. Returns the numbers of the nodes that were open, in order.
    pub fn clear(&self) -> Vec<u64> {
        self.0.write().clear()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_last_of_a_nodes_opens_is_told() {
        let mut opens = Opens::<_>::default();
        let (a, b, other) = (opens.add(7, 'a'), opens.add(7, 'b'), opens.add(8, 'c'));
        let closed = |node, open, is_last| Closed {
            node,
            open,
            is_last,
        };
        assert_eq!(opens.remove(a).unwrap(), closed(7, 'a', false));
        assert!(opens.is_open(7));
        assert_eq!(opens.remove(b).unwrap(), closed(7, 'b', true));
        assert!(!opens.is_open(7) && opens.is_open(8));
        assert_eq!(opens.remove(other).unwrap(), closed(8, 'c', true));
    }

    #[test]
    fn what_has_ended_is_stale() {
        let mut opens = Opens::<_>::default();
        let old = opens.add(1, ());
        opens.remove(old).unwrap();
        let new = opens.add(1, ());
        assert_ne!(old, new);
        assert_eq!(opens.get(old).unwrap_err(), Kind::Stale);
        assert_eq!(opens.get_mut(old).unwrap_err(), Kind::Stale);
        assert_eq!(opens.remove(old).unwrap_err(), Kind::Stale);
        assert!(opens.get(new).is_ok());
        for id in (0..64).flat_map(|n| [1 << n, !(1_u64 << n)]) {
            let id = OpenId(id);
            assert!(id == new || opens.get(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_place_is_given_up_before_an_id_comes_again() {
        let mut opens = Opens::<_>::default();
        let first = opens.add(1, ());
        opens.remove(first).unwrap();
        opens.slots[0].uses = u32::MAX - 1;
        let last = opens.add(1, ());
        assert_eq!(last.0 & 0xffff_ffff, 0);
        opens.remove(last).unwrap();
        let next = opens.add(1, ());
        assert_eq!(next, OpenId(1 << 32 | 1));
        assert_eq!(opens.get(last).unwrap_err(), Kind::Stale);
        opens.slots[1].uses = u32::MAX;
        opens.clear();
        assert!(opens.free.is_empty());
    }

    #[test]
    fn all_can_be_ended_at_once() {
        let opens = SharedOpens::<_>::default();
        let ids = [9, 3, 9, 5].map(|node| opens.add(node, node));
        assert_eq!(opens.get(ids[1]).unwrap(), 3);
        assert_eq!(opens.clear(), [3, 5, 9]);
        for id in ids {
            assert_eq!(opens.remove(id).unwrap_err(), Kind::Stale);
        }
        assert!(!ids.contains(&opens.add(9, 9)));
        assert!(opens.clear() == [9] && opens.clear().is_empty());
    }

    #[test]
    fn nodes_can_count_by_themselves() {
        #[derive(Default)]
        struct Total(Vec<char>);
        impl Count<char> for Total {
            fn up(&mut self, _: u64, open: &char) {
                self.0.push(*open);
            }
            fn down(&mut self, _: u64, open: &char) -> bool {
                self.0.retain(|other| other != open);
                self.0.is_empty()
            }
        }
        let mut opens = Opens::<_, Total>::default();
        let (a, _) = (opens.add(2, 'a'), opens.add(1, 'b'));
        assert!(!opens.remove(a).unwrap().is_last);
        assert_eq!(opens.clear(), [1]);
        assert!(opens.counts.0.is_empty());
    }

    proptest! {
        /// Compares with a plain map: ids are new, the data comes back, counts are right.
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0..4_u8, 0..6_u64), 0..200)) {
            let mut opens = Opens::<_>::default();
            let mut model: BTreeMap<OpenId, (u64, usize)> = BTreeMap::new();
            let mut given = Vec::new();
            for (step, (what, n)) in steps.into_iter().enumerate() {
                let pick = model.keys().nth(n as usize).copied();
                match (what, pick) {
                    (3, _) if n == 0 => {
                        opens.clear();
                        model.clear();
                    }
                    (2 | 3, Some(id)) => {
                        let (node, kept) = model.remove(&id).unwrap();
                        let is_last = model.values().all(|open| open.0 != node);
                        let closed = opens.remove(id).unwrap();
                        prop_assert_eq!((closed.node, closed.open, closed.is_last), (node, kept, is_last));
                    }
                    _ => {
                        let id = opens.add(n, step);
                        prop_assert!(!given.contains(&id));
                        given.push(id);
                        model.insert(id, (n, step));
                    }
                }
                for id in &given {
                    prop_assert_eq!(opens.get(*id).ok(), model.get(id).map(|open| &open.1));
                }
                for node in 0..6 {
                    prop_assert_eq!(opens.is_open(node), model.values().any(|open| open.0 == node));
                }
            }
        }
    }
}

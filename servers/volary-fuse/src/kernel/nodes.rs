//! Maps the kernel's node ids to nodes, and counts how often the kernel was given each.
//!
//! The kernel identifies a node by 64 bits, and the root is always 1. A node's `ino` is unique
//! among those that exist at the same time, so it serves as the id. Only 1 and the root's number
//! are swapped.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{Kind, NodeId, OpenId, Result};

/// The kernel's id of the root.
pub(crate) const ROOT: u64 = 1;
const SHARDS: usize = 16;

/// The nodes that the kernel knows. The root is always among them.
pub(crate) struct Nodes {
    root: NodeId,
    /// Like [`Known::stale`], for the root.
    root_stale: AtomicBool,
    shards: [RwLock<HashMap<u64, Known, BuildHasherDefault<Spread>>>; SHARDS],
}

struct Known {
    node: NodeId,
    lookups: u64,
    /// An open that keeps the node alive once its last name is gone.
    pin: Option<OpenId>,
    /// Others have changed the node's content, and the kernel may not have been notified yet.
    stale: bool,
}

/// A node of which the kernel has dropped some or all lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    pub(crate) node: NodeId,
    /// The open to close, because the kernel no longer knows the node.
    pub(crate) pin: Option<OpenId>,
}

impl Nodes {
    pub(crate) fn new(root: NodeId) -> Self {
        Self {
            root,
            root_stale: AtomicBool::new(false),
            shards: Default::default(),
        }
    }

    /// Returns the kernel's id of a node, which `stat` shows as its number.
    pub(crate) fn number(&self, node: NodeId) -> u64 {
        let ino = node.ino.get();
        if ino == self.root.ino.get() {
            ROOT
        } else if ino == ROOT {
            self.root.ino.get()
        } else {
            ino
        }
    }

    /// Returns the node with this id.
    ///
    /// # Errors
    /// `Stale` if the kernel was not given it, or has forgotten it.
    pub(crate) fn get(&self, number: u64) -> Result<NodeId> {
        if number == ROOT {
            return Ok(self.root);
        }
        let shard = self.shard(number).read();
        match shard.get(&number) {
            Some(known) => Ok(known.node),
            None => Err(Kind::Stale.into()),
        }
    }

    /// Counts that the kernel is given the node once more. A node with the same number but another
    /// generation replaces the one that is gone.
    pub(crate) fn remember(&self, node: NodeId) {
        let number = self.number(node);
        if number == ROOT {
            return;
        }
        let mut shard = self.shard(number).write();
        match shard.entry(number) {
            Slot::Occupied(mut slot) => {
                let known = slot.get_mut();
                known.node = node;
                known.lookups = known.lookups.saturating_add(1);
            }
            Slot::Vacant(slot) => {
                slot.insert(Known {
                    node,
                    lookups: 1,
                    pin: None,
                    stale: false,
                });
            }
        }
    }

    /// Subtracts `lookups` from the count of a node. Returns the node.
    pub(crate) fn forget(&self, number: u64, lookups: u64) -> Option<Forgotten> {
        if number == ROOT {
            return None;
        }
        let mut shard = self.shard(number).write();
        let Slot::Occupied(mut slot) = shard.entry(number) else {
            return None;
        };
        let node = slot.get().node;
        let left = slot.get().lookups.saturating_sub(lookups);
        let pin = if left == 0 {
            slot.remove().pin
        } else {
            slot.get_mut().lookups = left;
            None
        };
        Some(Forgotten { node, pin })
    }

    /// Keeps `open` while the kernel knows the node. Returns false if the kernel does not know it,
    /// or an open is kept already.
    pub(crate) fn pin(&self, node: NodeId, open: OpenId) -> bool {
        let number = self.number(node);
        match self.shard(number).write().get_mut(&number) {
            Some(known) if known.node == node && known.pin.is_none() => {
                known.pin = Some(open);
                true
            }
            _ => false,
        }
    }

    /// Notes that others have changed the node's content.
    pub(crate) fn mark_stale(&self, node: NodeId) {
        let number = self.number(node);
        if number == ROOT {
            self.root_stale.store(true, Ordering::Release);
        } else if let Some(known) = self.shard(number).write().get_mut(&number) {
            known.stale = true;
        }
    }

    /// Notes that others may have changed the content of all known nodes.
    pub(crate) fn mark_all_stale(&self) {
        self.root_stale.store(true, Ordering::Release);
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.values_mut().for_each(|known| known.stale = true);
        }
    }

    /// Returns whether others have changed the node's content, and clears the note.
    pub(crate) fn take_stale(&self, number: u64) -> bool {
        if number == ROOT {
            return self.root_stale.load(Ordering::Acquire)
                && self.root_stale.swap(false, Ordering::AcqRel);
        }
        let is_stale = |known: &Known| known.stale;
        if !self.shard(number).read().get(&number).is_some_and(is_stale) {
            return false;
        }
        let mut shard = self.shard(number).write();
        let known = shard.get_mut(&number);
        known.is_some_and(|known| std::mem::take(&mut known.stale))
    }

    /// Returns whether the kernel knows the node. It need not be notified about others.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        let number = self.number(node);
        number == ROOT || self.shard(number).read().contains_key(&number)
    }

    /// Returns the ids of all nodes that the kernel knows, including the root, in no order.
    pub(crate) fn all(&self) -> Vec<u64> {
        let mut all = vec![ROOT];
        for shard in &self.shards {
            all.extend(shard.read().keys());
        }
        all
    }

    fn shard(&self, number: u64) -> &RwLock<HashMap<u64, Known, BuildHasherDefault<Spread>>> {
        &self.shards[spread(number) as usize % SHARDS]
    }
}

/// Spreads node numbers. They are often close together, or apart by powers of two, and a
/// multiplication spreads both. They come from the volume, but the number of live ones is limited.
/// So a malicious volume can slow down only its own users.
#[derive(Default)]
struct Spread(u64);

fn spread(number: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(20)
}

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = spread(self.0 ^ number);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ino: u64, generation: u32) -> NodeId {
        NodeId::new(ino, generation).unwrap()
    }

    #[test]
    fn the_root_and_the_node_numbered_one_change_places() {
        let nodes = Nodes::new(node(7, 0));
        assert_eq!(nodes.number(node(7, 0)), 1);
        assert_eq!(nodes.number(node(1, 3)), 7);
        nodes.remember(node(1, 3));
        assert_eq!(nodes.get(7).unwrap(), node(1, 3));
        assert_eq!(nodes.get(1).unwrap(), node(7, 0));
    }

    #[test]
    fn a_node_is_stale_when_all_its_lookups_are_forgotten_and_not_before() {
        let nodes = Nodes::new(node(1, 0));
        nodes.remember(node(9, 1));
        nodes.remember(node(9, 1));
        let forgotten = Forgotten {
            node: node(9, 1),
            pin: None,
        };
        assert_eq!(nodes.forget(9, 1), Some(forgotten));
        assert!(nodes.get(9).is_ok());
        nodes.forget(9, 1);
        assert_eq!(nodes.get(9).unwrap_err(), Kind::Stale);
        assert_eq!(nodes.forget(9, 5), None);
    }

    #[test]
    fn a_number_used_again_means_the_newer_node() {
        let nodes = Nodes::new(node(1, 0));
        nodes.remember(node(9, 1));
        nodes.remember(node(9, 2));
        assert_eq!(nodes.get(9).unwrap(), node(9, 2));
        nodes.forget(9, 1);
        assert_eq!(nodes.get(9).unwrap(), node(9, 2));
    }

    #[test]
    fn a_pin_comes_back_with_the_last_lookup() {
        let nodes = Nodes::new(node(1, 0));
        assert!(!nodes.pin(node(9, 1), OpenId(4)));
        nodes.remember(node(9, 1));
        nodes.remember(node(9, 1));
        assert!(nodes.pin(node(9, 1), OpenId(5)));
        assert!(!nodes.pin(node(9, 1), OpenId(6)));
        assert_eq!(nodes.forget(9, 1).unwrap().pin, None);
        assert_eq!(nodes.forget(9, 1).unwrap().pin, Some(OpenId(5)));
    }

    #[test]
    fn what_others_changed_is_taken_once_of_the_root_too() {
        let nodes = Nodes::new(node(5, 0));
        nodes.remember(node(9, 1));
        for number in [ROOT, 9] {
            assert!(!nodes.take_stale(number));
        }
        nodes.mark_stale(node(5, 0));
        nodes.mark_stale(node(9, 1));
        nodes.mark_stale(node(10, 1));
        assert!(nodes.take_stale(ROOT) && nodes.take_stale(9) && !nodes.take_stale(10));
        nodes.mark_all_stale();
        assert!(nodes.take_stale(ROOT) && nodes.take_stale(9) && !nodes.take_stale(9));
    }

    #[test]
    fn the_root_is_never_forgotten() {
        let nodes = Nodes::new(node(5, 0));
        nodes.forget(1, u64::MAX);
        assert_eq!(nodes.get(1).unwrap(), node(5, 0));
    }
}

//! The uses of nodes, by node. Sharded, so that callers on different nodes do not wait for each
//! other.

use super::node::NodeUse;
use super::place::Place;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use volary_core::NodeId;

const SHARDS: usize = 16;

/// All nodes that are in use.
#[derive(Default)]
pub(crate) struct Table {
    shards: [Shard; SHARDS],
}

pub(super) type Nodes = HashMap<NodeId, NodeUse, BuildHasherDefault<Spread>>;

/// Hashes node ids. Their numbers come from the volume, so its author can make them collide, but
/// slows down only look-ups of that volume's nodes.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }
    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// One shard of the nodes.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) nodes: Mutex<Nodes>,
    /// Notified when a lease is given up.
    pub(super) changed: Condvar,
}

impl Table {
    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns the shard of a node.
    pub(super) fn shard(&self, node: NodeId) -> &Shard {
        // Numbers are often multiples of a power of two: the high half spreads them.
        let spread = node.ino.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.shards[spread as usize % SHARDS]
    }

    /// Changes the uses of a node, which may have none before.
    pub(super) fn with<T>(&self, node: NodeId, act: impl FnOnce(&mut NodeUse) -> T) -> T {
        let mut shard = self.shard(node).nodes.lock();
        let this = shard.entry(node).or_default();
        let answer = act(this);
        if this.is_idle() {
            shard.remove(&node);
        }
        answer
    }

    /// Changes the uses of a node. `None` if it has none.
    pub(super) fn with_known<T>(
        &self,
        node: NodeId,
        act: impl FnOnce(&mut NodeUse) -> T,
    ) -> Option<T> {
        let mut shard = self.shard(node).nodes.lock();
        let this = shard.get_mut(&node)?;
        let answer = act(this);
        if this.is_idle() {
            shard.remove(&node);
        }
        Some(answer)
    }

    /// Calls `look` on the uses of a node; false if it has none.
    pub(super) fn peek(&self, node: NodeId, look: impl FnOnce(&mut NodeUse) -> bool) -> bool {
        let mut nodes = self.shard(node).nodes.lock();
        nodes.get_mut(&node).is_some_and(look)
    }

    /// Returns how many opens the node has.
    pub(crate) fn count(&self, node: NodeId) -> usize {
        let shard = self.shard(node).nodes.lock();
        shard.get(&node).map_or(0, NodeUse::count)
    }

    /// Returns each open node with the place of its open, for all opens that have one.
    pub(crate) fn places(&self) -> Vec<(NodeId, Place)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (node, this) in shard.nodes.lock().iter() {
                let places = this.marked.iter().filter_map(|open| open.place.clone());
                all.extend(places.map(|place| (*node, place)));
            }
        }
        all
    }
}

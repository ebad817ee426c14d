//! Which node each lease key is for, and how many leases each client has.

use super::LeaseKey;
use std::collections::HashMap;
use volary_core::NodeId;

/// The keys of all leases of a volume.
pub(crate) struct Keys {
    nodes: HashMap<LeaseKey, NodeId>,
    clients: HashMap<[u8; 16], usize>,
    limit: usize,
    client_limit: usize,
}

impl Keys {
    pub(crate) fn new(limit: usize, client_limit: usize) -> Self {
        Self {
            nodes: HashMap::new(),
            clients: HashMap::new(),
            limit,
            client_limit,
        }
    }

    /// Returns the node that the key is for, while it has a lease.
    pub(crate) fn node_of(&self, key: &LeaseKey) -> Option<NodeId> {
        self.nodes.get(key).copied()
    }

    /// Adds a key that is not in the table. Returns false if there is no room.
    pub(crate) fn enter(&mut self, key: LeaseKey, node: NodeId) -> bool {
        let count = self.clients.get(&key.client).copied().unwrap_or(0);
        if self.nodes.len() >= self.limit || count >= self.client_limit {
            return false;
        }
        self.clients.insert(key.client, count + 1);
        self.nodes.insert(key, node);
        true
    }

    /// Removes a key.
    pub(crate) fn leave(&mut self, key: &LeaseKey) {
        if self.nodes.remove(key).is_none() {
            return;
        }
        if let Some(count) = self.clients.get_mut(&key.client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&key.client);
            }
        }
    }
}

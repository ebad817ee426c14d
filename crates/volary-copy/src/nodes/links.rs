//! Nodes with several names, while they are copied.
//!
//! The source counts how many names of a node are still to come, and passes that on with each
//! ([`Link`]). The sink remembers where it made the first ([`Made`]). Both forget a node with its
//! last name, so that only nodes with outstanding names take memory.

use crate::nodes::ids::{HostId, Id};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volary_core::NodeId;

/// Why another name of a node is not copied.
pub(crate) const OTHER_NAME: &str = "another name of a file that could not be copied; left out";

/// Marks a node that has more names than this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) id: Id,
    /// Another name came before.
    pub(crate) again: bool,
    /// No other name comes after.
    pub(crate) last: bool,
}

/// Where the first name of a node was made.
#[derive(Clone, Debug)]
pub(crate) enum Spot {
    Node(NodeId),
    Host {
        /// The directory, below the sink's own.
        dir: Arc<Vec<u8>>,
        name: Vec<u8>,
        /// Device and inode.
        id: HostId,
    },
}

/// Where the sink made nodes that have more names. Source and sink share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made(Arc<Mutex<HashMap<Id, Spot>>>);

impl Made {
    fn map(&self) -> MutexGuard<'_, HashMap<Id, Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the node was made, if it was.
    pub(crate) fn get(&self, id: Id) -> Option<Spot> {
        self.map().get(&id).cloned()
    }

    /// Remembers where the node was made, while more names are to come.
    pub(crate) fn made(&self, link: Link, spot: Spot) {
        let mut map = self.map();
        if link.last {
            map.remove(&link.id);
        } else {
            map.insert(link.id, spot);
        }
    }

    /// Forgets the node: its next name becomes a new node.
    pub(crate) fn forget(&self, id: Id) {
        self.map().remove(&id);
    }
}

/// Nodes of which a source has seen some names but not all.
#[derive(Debug, Default)]
pub(crate) struct Links {
    left: HashMap<Id, u32>,
    made: Made,
}

impl Links {
    /// Returns the sink's record of nodes that were made.
    pub(crate) fn made(&self) -> Made {
        self.made.clone()
    }

    /// Counts a name of a node with `names` names. Returns `None` if the node has no other.
    pub(crate) fn meet(&mut self, id: Id, names: u32) -> Option<Link> {
        if names < 2 && !self.left.contains_key(&id) {
            return None;
        }
        let seen = self.left.get(&id).copied();
        let left = seen.unwrap_or(names).saturating_sub(1);
        if left == 0 {
            self.left.remove(&id);
        } else {
            self.left.insert(id, left);
        }
        Some(Link {
            id,
            again: seen.is_some(),
            last: left == 0,
        })
    }

    /// Returns whether the sink needs no content for this name. If the sink has not made the first
    /// name yet, the content is sent again, and the sink ignores it.
    pub(crate) fn is_made(&self, link: Option<Link>) -> bool {
        link.is_some_and(|link| link.again && self.made.get(link.id).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_remembered_until_its_last_name() {
        let mut links = Links::default();
        let id = Id::Host((1, 2));
        assert!(links.meet(id, 1).is_none());
        let first = links.meet(id, 3).unwrap();
        assert!(!first.again && !first.last);
        assert!(!links.is_made(Some(first)));
        links.made().made(first, Spot::Node(node()));
        let second = links.meet(id, 3).unwrap();
        assert!(links.is_made(Some(second)) && !second.last);
        // The node may have lost names meanwhile.
        let third = links.meet(id, 1).unwrap();
        assert!(third.again && third.last);
        links.made().made(third, Spot::Node(node()));
        assert!(links.left.is_empty() && links.made.map().is_empty());
    }

    fn node() -> NodeId {
        NodeId::new(7, 0).unwrap()
    }
}

//! A bounded cache of nodes.

use crate::fail;
use crate::known::bounded::Bounded;
use crate::known::node::Node;
use crate::wire::proto::{Fattr, Fh};
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::sync::Arc;
use volary_core::{Kind, NodeId, Result};

/// How many nodes with the same number and hash can be kept apart.
const ALIKE_MAX: u32 = 8;

pub(crate) struct Nodes(Mutex<Bounded<NodeId, Arc<Node>>>);

/// Returns whether the node is in use, and must not be dropped.
fn is_used(node: &Arc<Node>) -> bool {
    Arc::strong_count(node) > 1
}

impl Nodes {
    pub(crate) fn new(max: usize) -> Self {
        Self(Mutex::new(Bounded::new(max)))
    }

    /// # Errors
    /// `Stale` if the node is not, or no longer, cached.
    pub(crate) fn get(&self, id: NodeId) -> Result<Arc<Node>> {
        let found = self.0.lock().get(&id, is_used);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the node of a handle, with attributes from a call made at `asked`.
    ///
    /// # Errors
    /// `Corrupt` for a server with too many handles of the same number and hash.
    pub(crate) fn enter(&self, fh: Fh, attr: &Fattr, asked: u64) -> Result<Arc<Node>> {
        let (ino, generation) = numbers(&fh, attr.fileid);
        let mut by_id = self.0.lock();
        for step in 0..ALIKE_MAX {
            let id = NodeId {
                ino,
                generation: generation.wrapping_add(step),
            };
            match by_id.get(&id, is_used) {
                Some(node) if node.fh == fh && node.kind == attr.kind => {
                    drop(by_id);
                    node.note(attr, asked)?;
                    return Ok(node);
                }
                // The server has reused the handle of a removed node for one of another kind.
                Some(node) if node.fh == fh => {}
                Some(_) => continue,
                None => {}
            }
            let node = Arc::new(Node::new(id, fh, *attr, asked));
            by_id.insert(id, Arc::clone(&node), is_used);
            return Ok(node);
        }
        let words = "handles of different nodes, different ones";
        Err(fail::nonsense(
            "file handle",
            "the same as many others",
            words,
        ))
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Returns a node's number, and as its generation a hash of the handle, which tells it from earlier
/// nodes with that number.
fn numbers(fh: &Fh, fileid: u64) -> (std::num::NonZeroU64, u32) {
    let mut hasher = SipHasher13::new();
    hasher.write(fh.bytes());
    let hash = hasher.finish();
    let ino = std::num::NonZeroU64::new(fileid)
        .or_else(|| std::num::NonZeroU64::new(hash))
        .unwrap_or(std::num::NonZeroU64::MIN);
    (ino, (hash >> 32) as u32)
}

//! All nodes that are known: as many as there is room for.

use crate::fail;
use crate::known::bounded::Bounded;
use crate::known::node::Node;
use crate::wire::proto::{Fattr, Fh};
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::sync::Arc;
use volary_core::{Kind, NodeId, Result};

/// How many handles with the same number and hash are told apart.
const ALIKE_MAX: u32 = 8;

pub(crate) struct Nodes(Mutex<Bounded<NodeId, Arc<Node>>>);

/// Returns whether it may not be forgotten: somebody uses it.
fn is_used(node: &Arc<Node>) -> bool {
    Arc::strong_count(node) > 1
}

impl Nodes {
    pub(crate) fn new(max: usize) -> Self {
        Self(Mutex::new(Bounded::new(max)))
    }

    /// # Errors
    /// `Stale` if it is not known, or not any more.
    pub(crate) fn get(&self, id: NodeId) -> Result<Arc<Node>> {
        let found = self.0.lock().get(&id, is_used);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the node of a handle, with attributes that a call brought which was made
    /// at `asked`.
    ///
    /// # Errors
    /// `Corrupt` for a server whose handles cannot be told apart.
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
                // The handle of one that is no more, used again for another kind.
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

/// Returns the number of a node, and what tells it from others that have had it: a hash
/// of its handle, the same each time.
fn numbers(fh: &Fh, fileid: u64) -> (std::num::NonZeroU64, u32) {
    let mut hasher = SipHasher13::new();
    hasher.write(fh.bytes());
    let hash = hasher.finish();
    let ino = std::num::NonZeroU64::new(fileid)
        .or_else(|| std::num::NonZeroU64::new(hash))
        .unwrap_or(std::num::NonZeroU64::MIN);
    (ino, (hash >> 32) as u32)
}

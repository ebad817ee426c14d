//! All nodes that are known, and the names that lead to them: as many as there is
//! room for.

use crate::bounded::Bounded;
use crate::fail;
use crate::node::Node;
use crate::proto::{Fattr, Fh};
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::sync::Arc;
use volary_core::{Kind, NodeId, Result};

/// How many handles with the same number and hash are told apart.
const ALIKE_MAX: u32 = 8;

pub(crate) struct Nodes {
    by_id: Mutex<Bounded<NodeId, Arc<Node>>>,
    names: Mutex<Bounded<At, Named>>,
}

/// A directory, and a name in it.
type At = (NodeId, Box<[u8]>);

/// What a name led to.
#[derive(Clone, Copy, Debug)]
struct Named {
    node: NodeId,
    /// The directory's epoch then.
    epoch: u64,
}

/// Returns whether it may not be forgotten: somebody uses it.
fn is_used(node: &Arc<Node>) -> bool {
    Arc::strong_count(node) > 1
}

impl Nodes {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            by_id: Mutex::new(Bounded::new(max)),
            names: Mutex::new(Bounded::new(max)),
        }
    }

    /// # Errors
    /// `Stale` if it is not known, or not any more.
    pub(crate) fn get(&self, id: NodeId) -> Result<Arc<Node>> {
        let found = self.by_id.lock().get(&id, is_used);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the node of a handle, with attributes that a call brought which was made
    /// at `asked`.
    ///
    /// # Errors
    /// `Corrupt` for a server whose handles cannot be told apart.
    pub(crate) fn enter(&self, fh: Fh, attr: &Fattr, asked: u64) -> Result<Arc<Node>> {
        let (ino, generation) = numbers(&fh, attr.fileid);
        let mut by_id = self.by_id.lock();
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

    /// Returns what `name` leads to in `dir`, if that is known and was not changed by
    /// others.
    pub(crate) fn named(&self, dir: &Node, name: &[u8]) -> Option<Arc<Node>> {
        let named = self.hint(dir.id, name)?;
        if named.epoch != dir.epoch() {
            return None;
        }
        self.get(named.node).ok()
    }

    fn hint(&self, dir: NodeId, name: &[u8]) -> Option<Named> {
        self.names.lock().get(&(dir, name.into()), |_| false)
    }

    /// Notes what a name leads to, as it was while the directory's epoch was
    /// `epoch`.
    pub(crate) fn name(&self, dir: NodeId, epoch: u64, name: &[u8], node: NodeId) {
        let named = Named { node, epoch };
        self.names
            .lock()
            .insert((dir, name.into()), named, |_| false);
    }

    pub(crate) fn unname(&self, dir: NodeId, name: &[u8]) {
        self.names.lock().remove(&(dir, name.into()));
    }

    pub(crate) fn clear(&self) {
        self.names.lock().clear();
        self.by_id.lock().clear();
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

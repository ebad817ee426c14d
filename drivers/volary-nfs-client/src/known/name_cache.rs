//! A bounded cache of names.

use crate::known::bounded::Bounded;
use parking_lot::Mutex;
use volary_core::NodeId;

/// Caches the nodes that names refer to.
pub(crate) struct NameCache(Mutex<Bounded<At, Named>>);

/// A directory, and a name in it.
type At = (NodeId, Box<[u8]>);

/// The node that a name referred to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) node: NodeId,
    /// The directory's epoch at that time.
    pub(crate) epoch: u64,
}

impl NameCache {
    pub(crate) fn new(max: usize) -> Self {
        Self(Mutex::new(Bounded::new(max)))
    }

    pub(crate) fn get(&self, dir: NodeId, name: &[u8]) -> Option<Named> {
        self.0.lock().get(&(dir, name.into()), |_| false)
    }

    /// Caches the node that a name refers to, as of this epoch of the directory.
    pub(crate) fn note(&self, dir: NodeId, epoch: u64, name: &[u8], node: NodeId) {
        let named = Named { node, epoch };
        self.0.lock().insert((dir, name.into()), named, |_| false);
    }

    pub(crate) fn forget(&self, dir: NodeId, name: &[u8]) {
        self.0.lock().remove(&(dir, name.into()));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

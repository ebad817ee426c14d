//! The opens.

use crate::dirs::Listing;
use crate::node::Node;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volary_core::{Kind, Mode, OpenId, Result};

/// One open.
pub(crate) struct Opened {
    pub(crate) id: OpenId,
    pub(crate) node: Arc<Node>,
    pub(crate) mode: Mode,
    pub(crate) listing: Mutex<Listing>,
    /// Where the next read begins if it goes on from the last; how many such
    /// there were.
    pub(crate) flow: Mutex<(u64, u32)>,
    /// The server was restarted, and a lock that was taken through it is another's now.
    pub(crate) lost_lock: AtomicBool,
}

/// All opens. Ids are never used twice.
#[derive(Default)]
pub(crate) struct Opens {
    all: RwLock<HashMap<OpenId, Arc<Opened>>>,
    last: AtomicU64,
}

impl Opens {
    pub(crate) fn add(&self, node: Arc<Node>, mode: Mode) -> OpenId {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        // Ids that come from elsewhere are likely to be small or powers of two.
        let id = OpenId(number << 8 | 5);
        node.opens.fetch_add(1, Ordering::SeqCst);
        let opened = Opened {
            id,
            node,
            mode,
            listing: Mutex::default(),
            flow: Mutex::new((0, 0)),
            lost_lock: AtomicBool::new(false),
        };
        self.all.write().insert(id, Arc::new(opened));
        id
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn get(&self, id: OpenId) -> Result<Arc<Opened>> {
        let found = self.all.read().get(&id).cloned();
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Ends an open; its node's count is the caller's to lower.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn remove(&self, id: OpenId) -> Result<Arc<Opened>> {
        let found = self.all.write().remove(&id);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns all that there are.
    pub(crate) fn ids(&self) -> Vec<OpenId> {
        self.all.read().keys().copied().collect()
    }
}

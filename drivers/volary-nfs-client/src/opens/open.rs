//! The table of opens.

use crate::fail;
use crate::known::node::Node;
use crate::opens::listing::Listing;
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
    /// The offset where a sequential read would continue, and how many reads in a row did.
    flow: Mutex<(u64, u32)>,
    /// Whether the server has restarted, and another client has a lock that was taken through it.
    lost_lock: AtomicBool,
}

impl Opened {
    /// Notes a read. Returns how many reads in a row, including this one, began where the one
    /// before ended.
    pub(crate) fn follows(&self, offset: u64, len: usize) -> u32 {
        let mut flow = self.flow.lock();
        let goes_on = flow.0 == offset;
        let end = offset.saturating_add(len as u64);
        *flow = (end, if goes_on { flow.1.saturating_add(1) } else { 0 });
        flow.1
    }

    /// Notes whether a lock that was taken through it is lost.
    pub(crate) fn set_lost_lock(&self, is_lost: bool) {
        self.lost_lock.store(is_lost, Ordering::SeqCst);
    }

    /// # Errors
    /// `Io` if a lock that was taken through it is lost.
    pub(crate) fn check_locks(&self) -> Result<()> {
        if self.lost_lock.load(Ordering::SeqCst) {
            let words = "the server was restarted, and another has what was locked here";
            return Err(fail::io(words));
        }
        Ok(())
    }
}

/// All opens. Ids are never reused.
#[derive(Default)]
pub(crate) struct Opens {
    all: RwLock<HashMap<OpenId, Arc<Opened>>>,
    last: AtomicU64,
}

impl Opens {
    pub(crate) fn add(&self, node: Arc<Node>, mode: Mode) -> OpenId {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        // Ids from elsewhere are likely to be small or powers of two, and must not match by chance.
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

    /// Removes an open. The caller must decrement its node's count.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn remove(&self, id: OpenId) -> Result<Arc<Opened>> {
        let found = self.all.write().remove(&id);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the ids of all opens.
    pub(crate) fn ids(&self) -> Vec<OpenId> {
        self.all.read().keys().copied().collect()
    }
}

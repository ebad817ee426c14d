//! The table of opens.

use crate::inode::Inode;
use crate::runs::Run;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Kind, OpenId, Result};

/// One open.
pub(crate) struct Open {
    pub(crate) inode: Inode,
    /// The run that was read last: most reads go on in it.
    pub(crate) last: Mutex<Option<Run>>,
}

/// All opens.
#[derive(Default)]
pub(crate) struct Opens {
    table: RwLock<HashMap<OpenId, Arc<Open>>>,
    last: AtomicU64,
}

impl Opens {
    pub(crate) fn add(&self, inode: Inode) -> OpenId {
        let id = OpenId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let last = Mutex::default();
        self.table
            .write()
            .insert(id, Arc::new(Open { inode, last }));
        id
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn get(&self, id: OpenId) -> Result<Arc<Open>> {
        let open = self.table.read().get(&id).cloned();
        open.ok_or_else(|| Kind::Stale.into())
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn remove(&self, id: OpenId) -> Result<()> {
        let open = self.table.write().remove(&id);
        open.map(drop).ok_or_else(|| Kind::Stale.into())
    }

    pub(crate) fn clear(&self) {
        self.table.write().clear();
    }
}

//! The opens.

use crate::held::listing::Listing;
use crate::kernel::error::from_errno;
use parking_lot::{Mutex, RwLock};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{FileKind, Kind, Mode, NodeId, OpenId, Result};

const SHARDS: usize = 16;

/// One open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: OpenId,
    pub(crate) node: NodeId,
    pub(crate) kind: FileKind,
    pub(crate) mode: Mode,
    pub(crate) fd: Arc<OwnedFd>,
    /// The state of a listing. It is locked while the descriptor's own offset is in use.
    pub(crate) listing: Mutex<Listing>,
}

impl Opened {
    pub(crate) fn writes(&self) -> bool {
        self.mode != Mode::Read
    }
}

/// All opens. Ids are never reused.
pub(crate) struct Opens {
    shards: [RwLock<HashMap<OpenId, Arc<Opened>>>; SHARDS],
    last: AtomicU64,
    /// Descriptors with this number or a higher one are reserved for other uses.
    first_reserved: usize,
}

impl Opens {
    pub(crate) fn new(first_reserved: usize) -> Self {
        Self {
            shards: Default::default(),
            last: AtomicU64::new(0),
            first_reserved,
        }
    }

    /// Checks that an open may keep this descriptor. The system gives the lowest free number, so a
    /// high number means that as many descriptors are in use.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub(crate) fn check_number(&self, fd: &OwnedFd) -> Result<()> {
        let number = usize::try_from(fd.as_raw_fd()).unwrap_or(usize::MAX);
        if number < self.first_reserved {
            Ok(())
        } else {
            Err(from_errno(Errno::MFILE))
        }
    }

    /// Adds an open.
    pub(crate) fn add(&self, node: NodeId, kind: FileKind, mode: Mode, fd: OwnedFd) -> Arc<Opened> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        // Guessed ids are likely to be small numbers or powers of two, so avoid those.
        let id = OpenId(number << 8 | 3);
        let opened = Arc::new(Opened {
            id,
            node,
            kind,
            mode,
            fd: Arc::new(fd),
            listing: Mutex::default(),
        });
        if let Some(shard) = self.shard(id) {
            shard.write().insert(id, Arc::clone(&opened));
        }
        opened
    }

    /// Returns an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn get(&self, id: OpenId) -> Result<Arc<Opened>> {
        let found = self.shard(id).and_then(|s| s.read().get(&id).cloned());
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns an open file.
    ///
    /// # Errors
    /// `Stale`; `IsDir`.
    pub(crate) fn file(&self, id: OpenId) -> Result<Arc<Opened>> {
        let open = self.get(id)?;
        if open.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        Ok(open)
    }

    /// Removes an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn remove(&self, id: OpenId) -> Result<Arc<Opened>> {
        let found = self.shard(id).and_then(|s| s.write().remove(&id));
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Removes all opens.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let all = std::mem::take(&mut *shard.write());
            drop(all);
        }
    }

    fn shard(&self, id: OpenId) -> Option<&RwLock<HashMap<OpenId, Arc<Opened>>>> {
        let number = usize::try_from(id.0 >> 8).unwrap_or(0);
        self.shards.get(number % SHARDS)
    }
}

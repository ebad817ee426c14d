//! [`LockFile`]: a file with locks, and the opens that they are held through.

use super::wanted::Place;
use parking_lot::Mutex;
use volary_core::{Caps, Mode, NodeId, OpenId, Result};
use volary_session::{Beside, ClientId, LockKind, OpenHow, Session};

pub(super) type FileId = (u32, NodeId);

/// A file that has locks, or may get some.
pub(crate) struct LockFile {
    pub(super) id: FileId,
    client: ClientId,
    /// The session for the server's own operations.
    own: Session,
    /// An open for reading and one for writing; they are closed with the file.
    opens: Mutex<[Option<OpenId>; 2]>,
    /// The owners that may have locks on it.
    pub(super) owners: Mutex<Vec<u64>>,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        for open in self.opens.get_mut().iter().flatten() {
            // Nothing was written through it.
            let _ = self.own.close(*open);
        }
    }
}

impl LockFile {
    pub(super) fn new(place: &Place<'_>) -> Self {
        Self {
            id: (place.export.id, place.node),
            client: place.export.client,
            own: place.export.own_session(),
            opens: Mutex::default(),
            owners: Mutex::default(),
        }
    }

    /// Returns the open that a lock of this kind is taken through.
    pub(super) fn open(&self, place: &Place<'_>, kind: LockKind) -> Result<OpenId> {
        let mut opens = self.opens.lock();
        let [reads, writes] = &mut *opens;
        let (slot, mode) = match kind {
            LockKind::Shared => (reads, Mode::Read),
            LockKind::Exclusive => (writes, Mode::Write),
        };
        if let Some(open) = *slot {
            return Ok(open);
        }
        // NFS clients' share modes do not conflict with any NFS client's locks. Those of other
        // servers' clients do, but not with a reclaimed lock, which is older than they are.
        let beside = if place.claims {
            Beside::All
        } else {
            Beside::Client
        };
        let how = OpenHow::from(mode).beside(beside);
        let session = if place.export.caps().has(Caps::CHECKS_ACCESS) {
            &place.session
        } else {
            &self.own
        };
        let open = session.open(place.node, how)?;
        *slot = Some(open);
        Ok(open)
    }

    /// Returns an open through which locks can be released.
    pub(super) fn any_open(&self) -> Option<OpenId> {
        self.opens.lock().iter().flatten().next().copied()
    }

    /// Returns whether the owner has locks.
    pub(super) fn is_held_by(&self, number: u64) -> bool {
        let Some(open) = self.any_open() else {
            return false;
        };
        let held = self.own.locks(open).unwrap_or_default();
        held.iter()
            .any(|h| h.owner.client == Some(self.client) && h.owner.number == number)
    }

    /// Ends all locks of an owner.
    pub(super) fn end(&self, number: u64) {
        if let Some(open) = self.any_open() {
            // A file that was removed has no locks.
            let _ = self.own.unlock_owner(open, number);
        }
    }
}

//! Locks: byte ranges by owner, whole files by open. Both are advisory: they
//! keep nobody from reading and writing.

use crate::locks::{HeldLock, LockOwner, LockTable, Range, Wanted};
use crate::session::Session;
use volary_core::{Cancel, Caps, Kind, Lock, OpenId, Result};

/// Which kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Many may hold it at once.
    Shared,
    /// One alone holds it.
    Exclusive,
}

/// Whether to wait for a lock that somebody else holds.
#[derive(Clone, Copy, Debug)]
pub enum Wait<'a> {
    /// Answer `Locked` at once.
    No,
    /// Wait, until this is set; see
    /// [`Volume::wake_waiting`](crate::Volume::wake_waiting).
    Yes(&'a Cancel),
}

impl Session {
    /// Takes a lock on a range of bytes for `owner`, a number that the client
    /// chooses. What the owner held of the range before is replaced: locks
    /// split, join, and change their kind. While one waits, the owner keeps
    /// what it had. The lock ends with [`unlock`](Self::unlock),
    /// [`unlock_owner`](Self::unlock_owner), or the close of an open through
    /// which the owner locked this file.
    ///
    /// # Errors
    /// `Access` for a shared lock on an open that does not read, or an
    /// exclusive one on an open that does not write; `Quota` when there are
    /// more than 4,096 locks on the node; `Locked` without waiting;
    /// `Interrupted`, `Deadlock` (waiting would never end) and `Stale` (the
    /// volume is detached) with. Where the volume shares locks with others
    /// ([`Caps::SHARED_LOCKS`]), its `Locked` comes with and without waiting;
    /// then the owner has no lock on the range.
    pub fn lock(
        &self,
        open: OpenId,
        owner: u64,
        range: Range,
        kind: LockKind,
        wait: Wait<'_>,
    ) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        let allowed = match kind {
            LockKind::Shared => opened.reads(),
            LockKind::Exclusive => opened.writes(),
        };
        if !allowed {
            return Err(Kind::Access.into());
        }
        let want = self.wanted(open, owner, range, kind)?;
        obtain(&self.volume.ranges, &want, wait)?;
        self.check_still_open(open, &self.volume.ranges, want.node)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS)
            && let Err(e) = self.lock_below(open, &want, false)
        {
            self.volume.ranges.unlock(want.node, want.owner, range)?;
            return Err(e);
        }
        Ok(())
    }

    /// Gives back what `owner` holds of the range.
    ///
    /// # Errors
    /// `Quota` if that would split a lock and there are more than 4,096 on
    /// the node.
    pub fn unlock(&self, open: OpenId, owner: u64, range: Range) -> Result<()> {
        let want = self.wanted(open, owner, range, LockKind::Shared)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS) {
            self.lock_below(open, &want, true)?;
        }
        self.volume.ranges.unlock(want.node, want.owner, range)
    }

    /// Gives back all that `owner` holds on the node: what POSIX wants when a
    /// process closes any of its descriptors of a file.
    ///
    /// # Errors
    /// None of its own.
    pub fn unlock_owner(&self, open: OpenId, owner: u64) -> Result<()> {
        let want = self.wanted(open, owner, Range::ALL, LockKind::Shared)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS) {
            self.lock_below(open, &want, true)?;
        }
        self.volume.ranges.end_owner(want.node, want.owner);
        Ok(())
    }

    /// A lock that keeps `owner` from having this one: the first by offset.
    /// `None` if it could be had now.
    ///
    /// # Errors
    /// None of its own.
    pub fn test_lock(
        &self,
        open: OpenId,
        owner: u64,
        range: Range,
        kind: LockKind,
    ) -> Result<Option<HeldLock>> {
        let want = self.wanted(open, owner, range, kind)?;
        Ok(self.volume.ranges.test(&want))
    }

    /// All byte-range locks on the node, by offset.
    ///
    /// # Errors
    /// None of its own.
    pub fn locks(&self, open: OpenId) -> Result<Vec<HeldLock>> {
        let opened = self.volume.opens.get(open)?;
        Ok(self.volume.ranges.held(opened.node))
    }

    /// Takes a lock on the whole file for this open, as `flock` does; it has
    /// nothing to do with byte ranges. Held by the open, it ends with
    /// [`funlock`](Self::funlock) or with the open. To change the kind of a lock
    /// that is held, it is given back first: if the new one is then not had, there
    /// is none.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), but any open will do.
    pub fn flock(&self, open: OpenId, kind: LockKind, wait: Wait<'_>) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        let want = Wanted {
            node: opened.node,
            owner: LockOwner::of_open(open),
            open,
            range: Range::ALL,
            exclusive: kind == LockKind::Exclusive,
        };
        let wholes = &self.volume.wholes;
        let held = wholes.held(want.node);
        if let Some(mine) = held.iter().find(|held| held.owner == want.owner) {
            if mine.exclusive == want.exclusive {
                return Ok(());
            }
            wholes.end_owner(want.node, want.owner);
        }
        obtain(wholes, &want, wait)?;
        self.check_still_open(open, wholes, want.node)
    }

    /// Gives back the open's whole-file lock, if it has one.
    ///
    /// # Errors
    /// None of its own.
    pub fn funlock(&self, open: OpenId) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        self.volume
            .wholes
            .end_owner(opened.node, LockOwner::of_open(open));
        Ok(())
    }

    fn wanted(&self, open: OpenId, owner: u64, range: Range, kind: LockKind) -> Result<Wanted> {
        let opened = self.volume.opens.get(open)?;
        if range.first > range.last {
            return Err(Kind::Invalid.into());
        }
        Ok(Wanted {
            node: opened.node,
            owner: LockOwner {
                client: self.client,
                number: owner,
            },
            open,
            range,
            exclusive: kind == LockKind::Exclusive,
        })
    }

    /// An open that was closed while it waited for a lock must not keep it.
    fn check_still_open(
        &self,
        open: OpenId,
        table: &LockTable,
        node: volary_core::NodeId,
    ) -> Result<()> {
        match self.volume.opens.get(open) {
            Ok(_) => Ok(()),
            Err(e) => {
                table.end_open(node, open);
                Err(e)
            }
        }
    }

    fn lock_below(&self, open: OpenId, want: &Wanted, unlock: bool) -> Result<()> {
        let below = self.volume.opens.get(open)?.below;
        let lock = Lock {
            owner: want.owner.number,
            offset: want.range.first,
            len: want.range.lock_len(),
            exclusive: want.exclusive,
            unlock,
            test: false,
        };
        self.fs().lock(&self.ctx(), below, lock)
    }
}

fn obtain(table: &LockTable, want: &Wanted, wait: Wait<'_>) -> Result<()> {
    match wait {
        Wait::No => table.try_lock(want),
        Wait::Yes(cancel) => table.lock(want, cancel),
    }
}

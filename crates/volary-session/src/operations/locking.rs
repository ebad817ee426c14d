//! Locks: byte ranges by owner or by open, whole files by open. They are advisory: they stop only
//! reads and writes of callers that ask [`check_io`](Session::check_io) first.

use crate::session::Session;
use crate::shared::leases::Impact;
use crate::shared::locks::{HeldLock, LockOwner, LockTable, Range, Wanted};
use crate::shared::opens::Opened;
use crate::shared::uses::By;
use volary_core::{Cancel, Caps, Kind, Lock, OpenId, Result};

/// Which kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Many may hold it at once.
    Shared,
    /// One alone holds it.
    Exclusive,
}

/// Whether to wait for a lock that another holds.
#[derive(Clone, Copy, Debug)]
pub enum Wait<'a> {
    /// Answer `Locked` at once.
    No,
    /// Wait, until this is set; see
    /// [`Volume::wake_waiting`](crate::Volume::wake_waiting).
    Yes(&'a Cancel),
}

impl Session {
    /// Takes a lock on a range of bytes for `owner`, a number that the client chooses. It replaces
    /// the owner's earlier locks on the range: locks split, join, and change their kind. Until a
    /// wait ends, the owner keeps what it had. The lock ends with [`unlock`](Self::unlock),
    /// [`unlock_owner`](Self::unlock_owner), or the close of an open through which the owner locked
    /// this file.
    ///
    /// # Errors
    /// `Access` for a shared lock on an open that does not read, or an exclusive one on an open
    /// that does not write. `Quota` if there are more than 4,096 locks on the node. Without
    /// waiting, `Locked` if another has a lock or a [grace period](crate::Grace) lasts. With
    /// waiting, `Interrupted`, `Deadlock` (the wait would never end) and `Stale` (the volume is
    /// detached). If the volume shares locks with others ([`Caps::SHARED_LOCKS`]), its `Locked`
    /// comes with and without waiting; then the owner has no lock on the range.
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
        self.obtain_range(&opened, &want, wait)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS)
            && let Err(e) = self.lock_below(open, &want, false)
        {
            self.volume.ranges.unlock(want.node, want.owner, range)?;
            return Err(e);
        }
        Ok(())
    }

    /// Releases the owner's locks on the range.
    ///
    /// # Errors
    /// `Quota` if that would split a lock and there are more than 4,096 on the node.
    pub fn unlock(&self, open: OpenId, owner: u64, range: Range) -> Result<()> {
        let want = self.wanted(open, owner, range, LockKind::Shared)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS) {
            self.lock_below(open, &want, true)?;
        }
        self.volume.ranges.unlock(want.node, want.owner, range)
    }

    /// Releases all that `owner` holds on the node: POSIX requires it when a process closes any of
    /// its descriptors of a file.
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

    /// Returns a lock that keeps `owner` from having this one: the first by offset. In a [grace
    /// period](crate::Grace), returns a lock of nobody on all bytes. `None` if it could be had now.
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

    /// Returns all byte-range locks on the node, by offset.
    ///
    /// # Errors
    /// None of its own.
    pub fn locks(&self, open: OpenId) -> Result<Vec<HeldLock>> {
        let opened = self.volume.opens.get(open)?;
        Ok(self.volume.ranges.held(opened.node))
    }

    /// Takes a lock on a range of bytes for this open, as in SMB: the lock is kept as requested,
    /// never joined or split, and several on the same bytes count one by one. An exclusive lock
    /// conflicts with every other, even the open's own; a shared one with exclusive locks of
    /// others. An empty range ([`Range::empty_at`]) conflicts if it lies within another's. The lock
    /// ends with [`unlock_exact`](Self::unlock_exact) or with the open. A waiter is never answered
    /// `Deadlock`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), but any open that holds data will do (`Access`).
    pub fn lock_exact(
        &self,
        open: OpenId,
        range: Range,
        kind: LockKind,
        wait: Wait<'_>,
    ) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        opened.data()?;
        let want = Wanted {
            node: opened.node,
            owner: LockOwner::exact(open),
            open,
            range,
            exclusive: kind == LockKind::Exclusive,
            exact: true,
            claims: self.claims,
            uid: self.cred.uid,
        };
        let ranges = &self.volume.ranges;
        self.obtain_range(&opened, &want, wait)?;
        if self.volume.caps.has(Caps::SHARED_LOCKS)
            && let Err(e) = self.lock_below(open, &want, false)
        {
            ranges.unlock_exact(want.node, want.owner, range);
            return Err(e);
        }
        Ok(())
    }

    /// Releases one lock of the open on exactly this range, an exclusive one before shared ones.
    ///
    /// # Errors
    /// `NotFound` if there is no such lock.
    pub fn unlock_exact(&self, open: OpenId, range: Range) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        let owner = LockOwner::exact(open);
        let ranges = &self.volume.ranges;
        if !ranges.unlock_exact(opened.node, owner, range) {
            return Err(Kind::NotFound.into());
        }
        let overlapped = ranges.held(opened.node).into_iter();
        let still = overlapped.filter(|held| held.owner == owner && held.range.overlaps(range));
        let told_below = self.volume.caps.has(Caps::SHARED_LOCKS) && !range.is_empty();
        if told_below && still.count() == 0 {
            let want = Wanted {
                owner,
                ..self.wanted(open, owner.number, range, LockKind::Shared)?
            };
            self.lock_below(open, &want, true)?;
        }
        Ok(())
    }

    /// Checks that no byte-range lock forbids reading or writing the range through this open. The
    /// range must not be empty. The caller's own locks are those of `owner` and of the open. For
    /// servers with mandatory locks; locks of all servers' callers count. A shared lock taken by
    /// [`lock_exact`](Self::lock_exact) forbids writing even to its own open.
    ///
    /// # Errors
    /// `Locked`.
    pub fn check_io(&self, open: OpenId, range: Range, writes: bool, owner: u64) -> Result<()> {
        if !self.volume.ranges.has_locks() {
            return Ok(());
        }
        let opened = self.volume.opens.get(open)?;
        let number = owner;
        let client = self.client;
        let mine = [LockOwner { client, number }, LockOwner::exact(open)];
        let in_the_way = |held: &HeldLock| {
            let forbids = if mine.contains(&held.owner) {
                writes && held.exact && !held.exclusive
            } else {
                writes || held.exclusive
            };
            forbids && held.range.overlaps(range)
        };
        if self.volume.ranges.any(opened.node, in_the_way) {
            return Err(Kind::Locked.into());
        }
        Ok(())
    }

    /// Takes a lock on the whole file for this open, as `flock` does; it is independent of byte
    /// ranges. The lock ends with [`funlock`](Self::funlock) or with the open. To change a lock's
    /// kind, the old lock is released first: if the new one is then not granted, the open has none.
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
            exact: false,
            claims: self.claims,
            uid: self.cred.uid,
        };
        let wholes = &self.volume.wholes;
        let held = wholes.held(want.node);
        if let Some(mine) = held.iter().find(|held| held.owner == want.owner) {
            if mine.exclusive == want.exclusive {
                return Ok(());
            }
            wholes.end_owner(want.node, want.owner);
        }
        self.obtain(wholes, &want, wait)?;
        self.check_still_open(open, wholes, want.node)
    }

    /// Releases the open's whole-file lock, if it has one.
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
            exact: false,
            claims: self.claims,
            uid: self.cred.uid,
        })
    }

    /// Takes a byte-range lock, once others' leases that forbid it are broken.
    fn obtain_range(&self, opened: &Opened, want: &Wanted, wait: Wait<'_>) -> Result<()> {
        let by = By::Open(opened.mark);
        self.contend(want.node, by, Impact::WRITE)?;
        self.obtain(&self.volume.ranges, want, wait)?;
        self.check_still_open(want.open, &self.volume.ranges, want.node)?;
        // Breaks a lease that was granted meanwhile.
        self.volume.break_leases(want.node, by);
        Ok(())
    }

    /// Takes a lock, and waits for it if it must. Calls the session's hook before a wait.
    fn obtain(&self, table: &LockTable, want: &Wanted, wait: Wait<'_>) -> Result<()> {
        let Wait::Yes(cancel) = wait else {
            return table.try_lock(want);
        };
        match table.try_lock(want) {
            Err(e) if e == Kind::Locked => {}
            done => return done,
        }
        self.note_wait();
        let cx = self.ctx();
        table.lock(want, &|| cancel.is_set() || cx.cancel.is_set())
    }

    /// Releases the lock again if the open was closed while it waited for the lock.
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
        let Some(below) = self.volume.opens.get(open)?.any() else {
            return Ok(());
        };
        if want.range.is_empty() {
            return Ok(());
        }
        let lock = Lock {
            owner: want.owner.below(),
            offset: want.range.first,
            len: want.range.lock_len(),
            exclusive: want.exclusive,
            unlock,
            test: false,
        };
        self.fs().lock(&self.ctx(), below, lock)
    }
}

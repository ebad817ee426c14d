//! Requests about byte-range locks, which are passed to the session's table.
//!
//! Whole-file locks (`flock`) always stay in the kernel: the FUSE library does not distinguish them
//! from ranges, and no other protocol has them.

use crate::kernel::errno::errno;
use crate::requests::waiters::Waiters;
use fuser::{FileHandle, LockOwner, ReplyEmpty};
use std::sync::Arc;
use volary_core::{Kind, OpenId, Result};
use volary_session::{LockKind, Range, Session, Wait};

const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
const F_UNLCK: i32 = 2;

/// What a request asks for.
#[derive(Clone, Copy)]
pub(crate) struct LockRequest {
    pub(crate) open: FileHandle,
    pub(crate) owner: LockOwner,
    pub(crate) range: Range,
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub(crate) kind: i32,
}

/// A conflicting lock, in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InTheWay {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) kind: i32,
}

impl LockRequest {
    /// Returns the kind, which is `None` to unlock.
    fn kind(&self) -> Result<Option<LockKind>> {
        match self.kind {
            F_RDLCK => Ok(Some(LockKind::Shared)),
            F_WRLCK => Ok(Some(LockKind::Exclusive)),
            F_UNLCK => Ok(None),
            _ => Err(Kind::Invalid.into()),
        }
    }

    /// Returns a conflicting lock. If there is none, returns the requested range as unlocked.
    pub(crate) fn test(&self, session: &Session) -> Result<InTheWay> {
        let kind = self.kind()?.unwrap_or(LockKind::Shared);
        let open = OpenId(self.open.0);
        let held = session.test_lock(open, self.owner.0, self.range, kind)?;
        Ok(match held {
            Some(held) => InTheWay {
                first: held.range.first,
                last: held.range.last,
                kind: if held.exclusive { F_WRLCK } else { F_RDLCK },
            },
            None => InTheWay {
                first: self.range.first,
                last: self.range.last,
                kind: F_UNLCK,
            },
        })
    }

    /// Takes or releases a lock, and answers. If it has to wait and may do so, a thread of
    /// `waiters` answers later.
    pub(crate) fn set(
        self,
        session: &Session,
        pid: u32,
        waiters: Option<&Arc<Waiters>>,
        reply: ReplyEmpty,
    ) {
        match (self.set_now(session), waiters) {
            (Err(e), Some(waiters)) if e == Kind::Locked => {
                self.wait(session.clone(), pid, waiters, reply);
            }
            (Ok(()), _) => reply.ok(),
            (Err(e), _) => reply.error(errno(e.kind())),
        }
    }

    fn set_now(&self, session: &Session) -> Result<()> {
        let open = OpenId(self.open.0);
        match self.kind()? {
            Some(kind) => session.lock(open, self.owner.0, self.range, kind, Wait::No),
            None => session.unlock(open, self.owner.0, self.range),
        }
    }

    fn wait(self, session: Session, pid: u32, waiters: &Arc<Waiters>, reply: ReplyEmpty) {
        let waited = waiters.run(pid, move |cancel| {
            let open = OpenId(self.open.0);
            let taken = self.kind().and_then(|kind| match kind {
                Some(kind) => session.lock(open, self.owner.0, self.range, kind, Wait::Yes(cancel)),
                None => Ok(()),
            });
            match taken {
                Ok(()) => reply.ok(),
                Err(e) => reply.error(errno(e.kind())),
            }
        });
        // If it was dropped with the closure, the reply was an I/O error.
        drop(waited);
    }
}

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
    /// The first and the last byte.
    pub(crate) range: (u64, u64),
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
    /// Returns a request for the owner's lock from the first to the last byte of `range`.
    pub(crate) fn new(
        (open, owner): (FileHandle, LockOwner),
        range: (u64, u64),
        kind: i32,
    ) -> LockRequest {
        LockRequest {
            open,
            owner,
            range,
            kind,
        }
    }

    /// Returns the range and the kind, which is `None` to unlock.
    fn parts(&self) -> Result<(Range, Option<LockKind>)> {
        let range = Range {
            first: self.range.0,
            last: self.range.1,
        };
        let kind = match self.kind {
            F_RDLCK => Some(LockKind::Shared),
            F_WRLCK => Some(LockKind::Exclusive),
            F_UNLCK => None,
            _ => return Err(Kind::Invalid.into()),
        };
        Ok((range, kind))
    }
}

impl LockRequest {
    /// Returns a conflicting lock. If there is none, returns the requested range as unlocked.
    pub(crate) fn test(&self, session: &Session) -> Result<InTheWay> {
        let (range, kind) = self.parts()?;
        let kind = kind.unwrap_or(LockKind::Shared);
        let open = OpenId(self.open.0);
        let held = session.test_lock(open, self.owner.0, range, kind)?;
        Ok(match held {
            Some(held) => InTheWay {
                first: held.range.first,
                last: held.range.last,
                kind: if held.exclusive { F_WRLCK } else { F_RDLCK },
            },
            None => InTheWay {
                first: self.range.0,
                last: self.range.1,
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
        let (range, kind) = self.parts()?;
        match kind {
            Some(kind) => session.lock(open, self.owner.0, range, kind, Wait::No),
            None => session.unlock(open, self.owner.0, range),
        }
    }

    fn wait(self, session: Session, pid: u32, waiters: &Arc<Waiters>, reply: ReplyEmpty) {
        let waited = waiters.run(pid, move |cancel| {
            let open = OpenId(self.open.0);
            let taken = self.parts().and_then(|(range, kind)| match kind {
                Some(kind) => session.lock(open, self.owner.0, range, kind, Wait::Yes(cancel)),
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

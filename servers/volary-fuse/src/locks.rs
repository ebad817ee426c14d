//! Requests about byte-range locks, which reach the session's table.
//!
//! Whole-file locks (`flock`) always stay with the kernel: the library below
//! does not tell them from ranges, and no other protocol has them.

use crate::caller::Caller;
use crate::errno::errno;
use crate::server::Server;
use fuser::{FileHandle, LockOwner, ReplyEmpty};
use volary_core::{Kind, OpenId, Result};
use volary_session::{LockKind, Range, Wait};

const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
const F_UNLCK: i32 = 2;

/// What a request asks for.
#[derive(Clone, Copy)]
pub(crate) struct LockRequest {
    pub(crate) open: FileHandle,
    pub(crate) owner: LockOwner,
    /// First and last byte.
    pub(crate) range: (u64, u64),
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub(crate) kind: i32,
}

/// What is in the way of a lock, as the kernel takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InTheWay {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) kind: i32,
}

impl LockRequest {
    /// Out of a request: whose lock, its first and last byte, and its kind.
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

    /// The range and kind; no kind to unlock.
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

impl Server {
    /// What is in the way of the lock; if nothing, its range, unlocked.
    pub(crate) fn test_lock(&self, req: &Caller, want: &LockRequest) -> Result<InTheWay> {
        let (range, kind) = want.parts()?;
        let kind = kind.unwrap_or(LockKind::Shared);
        let open = OpenId(want.open.0);
        let held = self
            .session(req)
            .test_lock(open, want.owner.0, range, kind)?;
        Ok(match held {
            Some(held) => InTheWay {
                first: held.range.first,
                last: held.range.last,
                kind: if held.exclusive { F_WRLCK } else { F_RDLCK },
            },
            None => InTheWay {
                first: want.range.0,
                last: want.range.1,
                kind: F_UNLCK,
            },
        })
    }

    /// Takes or gives back a lock, and answers; if it has to wait, later and
    /// from another thread.
    pub(crate) fn set_lock(
        &self,
        req: &Caller,
        want: &LockRequest,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let now = self.set_lock_now(req, want);
        match now {
            Err(e) if e == Kind::Locked && waits => self.wait_for_lock(req, *want, reply),
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(e.kind())),
        }
    }

    fn set_lock_now(&self, req: &Caller, want: &LockRequest) -> Result<()> {
        let session = self.session(req);
        let open = OpenId(want.open.0);
        let (range, kind) = want.parts()?;
        match kind {
            Some(kind) => session.lock(open, want.owner.0, range, kind, Wait::No),
            None => session.unlock(open, want.owner.0, range),
        }
    }

    fn wait_for_lock(&self, req: &Caller, want: LockRequest, reply: ReplyEmpty) {
        let session = self.session(req);
        let waited = self.waiters.run(req.pid, move |cancel| {
            let open = OpenId(want.open.0);
            let taken = want.parts().and_then(|(range, kind)| match kind {
                Some(kind) => session.lock(open, want.owner.0, range, kind, Wait::Yes(cancel)),
                None => Ok(()),
            });
            match taken {
                Ok(()) => reply.ok(),
                Err(e) => reply.error(errno(e.kind())),
            }
        });
        // Dropped with the closure, the reply was answered with an I/O error.
        drop(waited);
    }

    /// A process closed one of its descriptors: its locks on the file end.
    pub(crate) fn end_locks(&self, req: &Caller, open: FileHandle, owner: LockOwner) -> Result<()> {
        self.session(req).unlock_owner(OpenId(open.0), owner.0)
    }
}

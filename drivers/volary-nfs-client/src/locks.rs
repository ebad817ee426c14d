//! Byte-range locks at the server, by NLM version 4 (RFC 1813, appendix II; X/Open
//! XNFS, chapter 10).
//!
//! An owner here is one there: a number of its own, as `svid` and `oh`, for as
//! long as an open through which it locked is there. No lock is waited for at the
//! server. What becomes of locks when it is restarted is in [`claims`](crate::claims).

use crate::claims::Claims;
use crate::fail;
use crate::node::Node;
use crate::opens::Opened;
use crate::peer::{Call, Peer};
use crate::timer;
use crate::volume::{Volume, Who};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_core::{Error, FileKind, Kind, Lock, OpenId, Result};
use volary_rpc::numbers::NLM;
use volary_rpc::{Decoded, Input, Output};

const TEST: u32 = 1;
const LOCK: u32 = 2;
const UNLOCK: u32 = 4;

/// `nlm4_stats`.
pub(crate) const GRANTED: u32 = 0;
const DENIED: u32 = 1;
const DENIED_GRACE_PERIOD: u32 = 4;

/// `MAXNETOBJ_SZ`.
const OBJECT_MAX: usize = 1024;
/// The greatest offset that all servers know.
const END: u64 = i64::MAX as u64;
/// Between two tries while the server waits for others to claim their locks.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) struct Locks {
    /// NLM's port, if the server has it.
    pub(crate) peer: Option<Arc<Peer>>,
    pub(crate) claims: Claims,
    owners: Mutex<Owners>,
}

#[derive(Default)]
struct Owners {
    numbers: HashMap<u64, Owner>,
    by_open: HashMap<OpenId, HashSet<u64>>,
    last: u32,
}

#[derive(Clone, Copy)]
struct Owner {
    svid: u32,
    opens: usize,
}

/// `nlm4_lock`, but for whom it is that calls.
pub(crate) struct Range {
    pub(crate) svid: u32,
    offset: u64,
    /// 0 for all that a file can have.
    len: u64,
}

impl Range {
    pub(crate) fn new(svid: u32, offset: u64, len: u64) -> Self {
        let to_end = offset.saturating_add(len) > END;
        let len = if to_end { 0 } else { len };
        Self { svid, offset, len }
    }

    /// From the first byte to the last.
    pub(crate) fn between(svid: u32, first: u64, last: u64) -> Self {
        Self::new(svid, first, (last - first).saturating_add(1))
    }

    /// Returns the first byte and the last.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let last = match self.len {
            0 => END,
            len => self.offset + (len - 1),
        };
        (self.offset, last)
    }
}

impl Locks {
    pub(crate) fn new(peer: Option<Arc<Peer>>) -> Self {
        Self {
            peer,
            claims: Claims::default(),
            owners: Mutex::default(),
        }
    }

    fn svid(&self, open: OpenId, owner: u64) -> u32 {
        let owners = &mut *self.owners.lock();
        let found = owners.numbers.entry(owner).or_insert_with(|| {
            owners.last = owners.last.wrapping_add(1) & (u32::MAX >> 1);
            Owner {
                svid: owners.last,
                opens: 0,
            }
        });
        if owners.by_open.entry(open).or_default().insert(owner) {
            found.opens += 1;
        }
        found.svid
    }

    /// Returns the numbers of those who locked through an open, which is forgotten.
    fn end_open(&self, open: OpenId) -> Vec<u32> {
        let owners = &mut *self.owners.lock();
        let of_open = owners.by_open.remove(&open).unwrap_or_default();
        let mut numbers = Vec::with_capacity(of_open.len());
        for number in of_open {
            if let Some(owner) = owners.numbers.get_mut(&number) {
                numbers.push(owner.svid);
                owner.opens -= 1;
                if owner.opens == 0 {
                    owners.numbers.remove(&number);
                }
            }
        }
        numbers
    }
}

impl Volume {
    /// See [`lock`](volary_core::FileSystem::lock).
    pub(crate) fn lock_range(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Opened,
        lock: Lock,
    ) -> Result<()> {
        let Some(peer) = &self.locks.peer else {
            return Err(Kind::Unsupported.into());
        };
        if open.node.kind != FileKind::File || lock.offset > END {
            return Err(Kind::Invalid.into());
        }
        let svid = self.locks.svid(open.id, lock.owner);
        let range = Range::new(svid, lock.offset, lock.len);
        let until = timer::now() + self.options.timeout;
        loop {
            let status = match (lock.unlock, lock.test) {
                (true, _) => self.unlock_range(who, open, &range),
                (false, true) => self.nlm(peer, who, TEST, |out| {
                    out.bool(lock.exclusive);
                    self.put(out, &open.node, &range);
                }),
                (false, false) => {
                    let how = (&range, Some(lock.exclusive));
                    self.noting(who, open, how, || {
                        self.take_lock(who, &open.node, &range, lock.exclusive, false)
                    })
                }
            };
            match status? {
                GRANTED => return Ok(()),
                DENIED_GRACE_PERIOD => {
                    // What we had goes first.
                    self.claim_if_restarted();
                    if timer::now() + GRACE >= until {
                        return Err(refusal(DENIED_GRACE_PERIOD));
                    }
                    peer.rest(GRACE);
                }
                status => return Err(refusal(status)),
            }
        }
    }

    /// LOCK: the status.
    pub(crate) fn take_lock(
        &self,
        who: Who<'_>,
        node: &Node,
        range: &Range,
        exclusive: bool,
        reclaims: bool,
    ) -> Result<u32> {
        let peer = self.locks.peer.as_ref().ok_or(Kind::Unsupported)?;
        self.nlm(peer, who, LOCK, |out| {
            out.bool(false);
            out.bool(exclusive);
            self.put(out, node, range);
            out.bool(reclaims);
            // What NSM would say of us.
            out.u32(1);
        })
    }

    fn unlock_range(self: &Arc<Self>, who: Who<'_>, open: &Opened, range: &Range) -> Result<u32> {
        let peer = self.locks.peer.as_ref().ok_or(Kind::Unsupported)?;
        open.lost_lock.store(false, Ordering::SeqCst);
        self.noting(who, open, (range, None), || {
            self.nlm(peer, who, UNLOCK, |out| self.put(out, &open.node, range))
        })
    }

    fn put(&self, out: &mut Output, node: &Node, range: &Range) {
        let machine = &self.machine;
        out.opaque(machine);
        node.fh.write(out);
        let mut name = range.svid.to_string().into_bytes();
        name.push(b'@');
        name.extend_from_slice(machine);
        out.opaque(&name);
        out.u32(range.svid);
        out.u64(range.offset);
        out.u64(range.len);
    }

    fn nlm(
        &self,
        peer: &Peer,
        who: Who<'_>,
        procedure: u32,
        write: impl FnOnce(&mut Output),
    ) -> Result<u32> {
        let call = Call {
            program: NLM,
            procedure,
            cred: Some(who.cred),
            cancel: who.cancel,
        };
        let done = peer.call(&call, |out| {
            out.opaque(b"volary");
            write(out);
        })?;
        let read = |mut input: Input<'_>| -> Decoded<u32> {
            input.opaque(OBJECT_MAX)?;
            input.u32()
        };
        read(done.results()).map_err(fail::garbage)
    }

    /// Gives back what was locked through an open.
    pub(crate) fn unlock_open(self: &Arc<Self>, who: Who<'_>, open: &Opened) {
        for svid in self.locks.end_open(open.id) {
            let all = Range::new(svid, 0, u64::MAX);
            // A server that is gone has no locks.
            let _ = self.unlock_range(who, open, &all);
            self.locks.claims.note(who, open, &all, None);
        }
    }
}

/// Returns what a status other than GRANTED means.
fn refusal(status: u32) -> Error {
    match status {
        DENIED | 3 => Kind::Locked.into(),
        2 => Error::note(Kind::NoSpace, "the server has no room for more locks"),
        DENIED_GRACE_PERIOD => Error::note(
            Kind::Busy,
            "the server was restarted and gives no new locks yet",
        ),
        5 => Kind::Deadlock.into(),
        6 => Kind::ReadOnly.into(),
        7 => Kind::Stale.into(),
        8 => Kind::TooBig.into(),
        9 => fail::io("the server's lock manager failed"),
        _ => fail::nonsense("status of NLM", status, "one of nlm4_stats"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_number_while_an_open_of_its_is_there() {
        let locks = Locks::new(None);
        let (a, b) = (OpenId(1), OpenId(2));
        let first = locks.svid(a, 77);
        assert_eq!(locks.svid(a, 77), first);
        assert_eq!(locks.svid(b, 77), first);
        assert_ne!(locks.svid(a, 78), first);
        assert_eq!(locks.end_open(a).len(), 2);
        assert_eq!(locks.svid(b, 77), first);
        assert_eq!(locks.end_open(b), [first]);
        assert_ne!(locks.svid(b, 77), first);
    }
}

//! Byte-range locks at the server.
//!
//! The client never waits for a lock at the server. [`claims`](crate::opens::claims) says what
//! happens to locks when the server restarts.

use crate::calls::export::{Export, Who};
use crate::opens::claims::Claims;
use crate::opens::nlm::{DENIED_GRACE_PERIOD, END, GRANTED, Nlm, Range, refusal};
use crate::opens::open::Opened;
use crate::opens::owners::Owners;
use crate::timer;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{FileKind, Kind, Lock, Result};

/// How long to wait before a lock is requested again in the server's grace period.
const GRACE: Duration = Duration::from_secs(1);

/// Takes locks at a server that has NLM.
pub(crate) struct Locks {
    nlm: Nlm,
    claims: Arc<Claims>,
    owners: Owners,
    /// How long a lock may take, including the server's grace period.
    timeout: Duration,
}

impl Locks {
    pub(crate) fn new(export: Arc<Export>, nlm: Nlm, timeout: Duration) -> Self {
        Self {
            claims: Arc::new(Claims::new(export, nlm.clone())),
            owners: Owners::after(nlm.before_owners()),
            nlm,
            timeout,
        }
    }

    /// Closes all connections.
    pub(crate) fn end(&self) {
        self.nlm.end();
    }

    /// See [`lock`](volary_core::FileSystem::lock).
    pub(crate) fn lock(&self, who: Who<'_>, open: &Arc<Opened>, lock: Lock) -> Result<()> {
        if open.node.kind != FileKind::File || lock.offset > END {
            return Err(Kind::Invalid.into());
        }
        let svid = self.owners.svid(open.id, lock.owner);
        let range = Range::new(svid, lock.offset, lock.len);
        let until = timer::now() + self.timeout;
        loop {
            let status = match (lock.unlock, lock.test) {
                (true, _) => self.unlock(who, open, &range),
                (false, true) => self.nlm.test(who, &open.node, &range, lock.exclusive),
                (false, false) => self.claims.lock(who, open, &range, lock.exclusive),
            };
            match status? {
                GRANTED => return Ok(()),
                DENIED_GRACE_PERIOD => {
                    // Our own earlier locks are reclaimed first.
                    self.claims.claim_if_restarted();
                    if timer::now() + GRACE >= until {
                        return Err(refusal(DENIED_GRACE_PERIOD));
                    }
                    self.nlm.rest(GRACE);
                }
                status => return Err(refusal(status)),
            }
        }
    }

    fn unlock(&self, who: Who<'_>, open: &Arc<Opened>, range: &Range) -> Result<u32> {
        open.set_lost_lock(false);
        self.claims.unlock(who, open, range)
    }

    /// Releases the locks that were taken through an open.
    pub(crate) fn end_open(&self, who: Who<'_>, open: &Arc<Opened>) {
        for svid in self.owners.end_open(open.id) {
            let all = Range::new(svid, 0, u64::MAX);
            // A server that has failed holds no locks.
            let _ = self.unlock(who, open, &all);
            self.claims.note(who, open, &all, None);
        }
    }
}

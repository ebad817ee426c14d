//! Byte-range locks at the server.
//!
//! No lock is waited for at the server. What becomes of locks when it is restarted is in
//! [`claims`](crate::opens::claims).

use crate::calls::export::{Export, Who};
use crate::opens::claims::Claims;
use crate::opens::nlm::{DENIED_GRACE_PERIOD, END, GRANTED, Nlm, Range, refusal};
use crate::opens::open::Opened;
use crate::opens::owners::Owners;
use crate::timer;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{FileKind, Kind, Lock, Result};

/// Between two tries while the server waits for others to claim their locks.
const GRACE: Duration = Duration::from_secs(1);

/// Locks of a server that has NLM.
pub(crate) struct Locks {
    nlm: Nlm,
    claims: Arc<Claims>,
    owners: Owners,
    /// How long a lock may take, the server's time of grace included.
    timeout: Duration,
}

impl Locks {
    pub(crate) fn new(export: Arc<Export>, nlm: Nlm, timeout: Duration) -> Self {
        Self {
            claims: Arc::new(Claims::new(export, nlm.clone())),
            nlm,
            owners: Owners::default(),
            timeout,
        }
    }

    /// Ends all connections.
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
                    // What we had goes first.
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

    /// Gives back what was locked through an open.
    pub(crate) fn end_open(&self, who: Who<'_>, open: &Arc<Opened>) {
        for svid in self.owners.end_open(open.id) {
            let all = Range::new(svid, 0, u64::MAX);
            // A server that is gone has no locks.
            let _ = self.unlock(who, open, &all);
            self.claims.note(who, open, &all, None);
        }
    }
}

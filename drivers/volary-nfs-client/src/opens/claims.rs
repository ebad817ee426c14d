//! Locks that the server gave, and how they are reclaimed when it restarts (NLM's reclaim). Servers
//! report a restart to a client's NSM, but they reach it only through a portmapper, which we do not
//! run. So the server is polled instead.
//!
//! While there are locks, a thread checks every few seconds whether the server answers. All locks
//! are reclaimed if two things hold: a new connection was needed, and the write verifier has
//! changed or is unknown. The server may refuse a reclaim because it has no grace period, or
//! because that is over. Then the lock is requested as a new one. A lock that another client has by
//! then is lost. The next read, write or sync through that open reports it, and so does each later
//! one until something is unlocked through the open.

use crate::calls::export::{Export, Who};
use crate::known::node::Node;
use crate::opens::nlm::{GRANTED, Nlm, Range};
use crate::opens::open::Opened;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use volary_core::{Cred, NodeId, Result};

/// How often the server is checked: several times in any grace period.
const LOOK: Duration = Duration::from_secs(3);

/// The locks that the server has given.
pub(crate) struct Claims {
    export: Arc<Export>,
    nlm: Nlm,
    held: Mutex<HashMap<Whose, Vec<Held>>>,
    /// Read-locked during a call that takes or releases a lock, and while that is noted.
    /// The run of the server that granted the locks. Write-locked while they are reclaimed.
    run: RwLock<Mutex<Option<Run>>>,
    is_watched: AtomicBool,
}

/// A node, and the number of a lock owner.
type Whose = (NodeId, u32);

/// One run of the server.
#[derive(Clone, Copy)]
struct Run {
    /// The write verifier; `None` if the caller may not ask for it.
    verifier: Option<[u8; 8]>,
    /// How many connections had been made when it was asked for.
    connections: u32,
}

/// One lock.
#[derive(Clone)]
struct Held {
    open: Arc<Opened>,
    cred: Cred,
    svid: u32,
    first: u64,
    last: u64,
    exclusive: bool,
}

impl Held {
    fn range(&self) -> Range {
        Range::between(self.svid, self.first, self.last)
    }

    /// Returns the parts of the lock outside these bytes.
    fn without(&self, first: u64, last: u64) -> impl Iterator<Item = Self> {
        let before = (self.first < first).then(|| (self.first, self.last.min(first - 1)));
        let after = (self.last > last).then(|| (self.first.max(last + 1), self.last));
        let part = |(first, last)| Self {
            first,
            last,
            ..self.clone()
        };
        let parts = [before, after].map(|range| range.map(part));
        parts.into_iter().flatten()
    }
}

impl Claims {
    pub(crate) fn new(export: Arc<Export>, nlm: Nlm) -> Self {
        Self {
            export,
            nlm,
            held: Mutex::default(),
            run: RwLock::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Calls LOCK, and notes the lock if it was granted. Returns the status.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn lock(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Arc<Opened>,
        range: &Range,
        exclusive: bool,
    ) -> Result<u32> {
        self.noting(who, open, range, Some(exclusive), || {
            self.nlm.lock(who, &open.node, range, exclusive, false)
        })
    }

    /// Calls UNLOCK, and notes the release if it was granted. Returns the status.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn unlock(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Arc<Opened>,
        range: &Range,
    ) -> Result<u32> {
        self.noting(who, open, range, None, || {
            self.nlm.unlock(who, &open.node, range)
        })
    }

    /// Notes an owner's lock on the range (`exclusive` or not), or with `None` that it has none. It
    /// replaces the owner's earlier locks on the range.
    pub(crate) fn note(
        &self,
        who: Who<'_>,
        open: &Arc<Opened>,
        range: &Range,
        exclusive: Option<bool>,
    ) {
        let mut held = self.held.lock();
        let (first, last) = range.bounds();
        let whose = (open.node.id, range.svid);
        let before = held.remove(&whose).unwrap_or_default();
        let mut now: Vec<Held> = before
            .iter()
            .flat_map(|lock| lock.without(first, last))
            .collect();
        now.extend(exclusive.map(|exclusive| Held {
            open: Arc::clone(open),
            cred: who.cred.clone(),
            svid: range.svid,
            first,
            last,
            exclusive,
        }));
        if !now.is_empty() {
            held.insert(whose, now);
        }
    }

    /// Takes (`exclusive` or not) or releases a lock by `call`, and notes that if it was granted.
    ///
    /// # Errors
    /// Those of the call.
    fn noting(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Arc<Opened>,
        range: &Range,
        exclusive: Option<bool>,
        call: impl FnOnce() -> Result<u32>,
    ) -> Result<u32> {
        let run = self.run.read();
        if exclusive.is_some() && self.held.lock().is_empty() {
            *run.lock() = Some(self.run_of_server(who, &open.node));
        }
        let status = call()?;
        if status == GRANTED {
            self.note(who, open, range, exclusive);
            self.watch();
        }
        Ok(status)
    }

    /// Reclaims all locks, if the server has restarted since it gave them.
    pub(crate) fn claim_if_restarted(&self) {
        let mut run = self.run.write();
        let run = run.get_mut();
        let held = self.held.lock();
        let all: Vec<Held> = held.values().flatten().cloned().collect();
        drop(held);
        let (Some(before), Some(first)) = (*run, all.first()) else {
            return;
        };
        let now = self.run_of_server(Who::behind(&first.cred), &first.open.node);
        let is_same = now.verifier.is_some() && now.verifier == before.verifier;
        // If the server fails again, the next check repeats this.
        if is_same || all.iter().all(|lock| self.claim(lock).is_ok()) {
            *run = Some(now);
        }
    }

    /// # Errors
    /// Those of a call.
    fn claim(&self, lock: &Held) -> Result<()> {
        for reclaims in [true, false] {
            let who = Who::behind(&lock.cred);
            let range = lock.range();
            let status = self
                .nlm
                .lock(who, &lock.open.node, &range, lock.exclusive, reclaims)?;
            if status == GRANTED {
                return Ok(());
            }
        }
        lock.open.set_lost_lock(true);
        Ok(())
    }

    fn run_of_server(&self, who: Who<'_>, node: &Node) -> Run {
        let connections = self.export.connections();
        Run {
            verifier: self.export.commit(who, node).ok(),
            connections,
        }
    }

    /// Starts a thread that detects a restart of the server while there are locks. If no thread can
    /// be started, the next lock tries again.
    fn watch(self: &Arc<Self>) {
        let held = self.held.lock();
        if held.is_empty() || self.is_watched.swap(true, Ordering::SeqCst) {
            return;
        }
        drop(held);
        let (claims, export) = (Arc::downgrade(self), Arc::clone(&self.export));
        let thread = std::thread::Builder::new().name("nfs locks".into());
        let watched = thread.spawn(move || {
            export.rest(LOOK);
            while look(&claims) {
                export.rest(LOOK);
            }
        });
        if watched.is_err() {
            self.is_watched.store(false, Ordering::SeqCst);
        }
    }
}

/// Checks the server once. Returns whether to go on.
fn look(claims: &Weak<Claims>) -> bool {
    let Some(claims) = claims.upgrade() else {
        return false;
    };
    let held = claims.held.lock();
    if claims.export.check().is_err() || held.is_empty() {
        // The next lock starts a new thread.
        claims.is_watched.store(false, Ordering::SeqCst);
        return false;
    }
    drop(held);
    if claims.export.answers() {
        let seen = claims.run.read().lock().map(|run| run.connections);
        if seen.is_some_and(|seen| seen != claims.export.connections()) {
            claims.claim_if_restarted();
        }
    }
    true
}

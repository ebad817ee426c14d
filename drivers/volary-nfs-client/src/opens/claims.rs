//! Locks that the server gave, claimed again when it was restarted (NLM's reclaim): what
//! the server's status monitor would call us for (NSM) is found out by asking, as nobody
//! calls a program without a portmapper.
//!
//! While there are locks, a thread asks the server every few seconds whether it is there. If
//! it had to be connected to anew, and has another write verifier than before the first
//! lock, or does not tell us any, all are claimed. One that the server refuses as a claim, because it knows no time of
//! grace or that is over, is asked for as a new one. What another has by then is lost: who
//! locked it is told by the next read, write or sync through that open, and by each until
//! something is unlocked through it.

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

/// Between two looks whether the server is there: several in any time of grace.
const LOOK: Duration = Duration::from_secs(3);

/// The locks that the server gave.
pub(crate) struct Claims {
    export: Arc<Export>,
    nlm: Nlm,
    held: Mutex<HashMap<Whose, Vec<Held>>>,
    /// Shared over a call that takes or gives back a lock and the note of it; held alone
    /// over claims, with the run of the server that gave the locks.
    run: RwLock<Mutex<Option<Run>>>,
    is_watched: AtomicBool,
}

/// An owner's number, and what it locks.
type Whose = (NodeId, u32);

/// One run of the server.
#[derive(Clone, Copy)]
struct Run {
    /// `None` to who may not ask.
    verifier: Option<[u8; 8]>,
    /// How many connections there had been when it was asked for.
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

    /// Returns what is left of it without these bytes.
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

    /// LOCK, and notes it if it was granted: the status.
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
        self.noting(who, open, (range, Some(exclusive)), || {
            self.nlm.lock(who, &open.node, range, exclusive, false)
        })
    }

    /// UNLOCK, and notes it if it was granted: the status.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn unlock(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Arc<Opened>,
        range: &Range,
    ) -> Result<u32> {
        self.noting(who, open, (range, None), || {
            self.nlm.unlock(who, &open.node, range)
        })
    }

    /// Notes that an owner has a lock on the range (exclusively or not), or none, in place of
    /// what it had of it.
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

    /// Takes (exclusively or not) or gives back a lock by `call`, and notes it if it was
    /// granted.
    ///
    /// # Errors
    /// Those of the call.
    fn noting(
        self: &Arc<Self>,
        who: Who<'_>,
        open: &Arc<Opened>,
        (range, exclusive): (&Range, Option<bool>),
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

    /// Claims all locks, if the server was restarted since it gave them.
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
        // A server that is gone again is asked again.
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

    /// Sees to it that a restart of the server is found out while there are locks. Where
    /// there can be no thread for it, the next lock finds it out.
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

/// Looks once; whether to go on.
fn look(claims: &Weak<Claims>) -> bool {
    let Some(claims) = claims.upgrade() else {
        return false;
    };
    let held = claims.held.lock();
    if claims.export.check().is_err() || held.is_empty() {
        // Whoever has the next lock looks again.
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

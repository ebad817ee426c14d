//! Requests that wait for a lock. Each has a thread: at most [`WAITERS_MAX`] in all, and
//! [`WAITERS_OF_PARTY`] for a client. Clients repeat a request every half a minute or so. If there
//! is no thread for one, or it cannot be called, it gets the lock that way.

use super::Nlm;
use super::granted;
use super::lock_file::LockFile;
use super::table::Locks;
use super::waiter::Waiter;
use super::wanted::Wanted;
use crate::timer;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Cancel, OpenId};
use volary_session::{LockKind, Session, Wait};

const WAITERS_MAX: usize = 128;
/// How many waiting requests one client can have.
const WAITERS_OF_PARTY: usize = 32;

impl Locks {
    /// Returns the waiter for this lock, if the request was made before.
    pub(super) fn waiter(&self, want: &Wanted) -> Option<Arc<Waiter>> {
        let state = self.state.lock();
        state.waiters.iter().find(|w| w.want == *want).cloned()
    }

    pub(super) fn thread_ended(&self) {
        self.state.lock().threads -= 1;
        self.ended.notify_all();
    }

    /// Waits until all threads have ended, or for this long.
    pub(crate) fn wait_ended(&self, most: Duration) {
        let until = timer::now() + most;
        let mut state = self.state.lock();
        while state.threads > 0 && !self.ended.wait_until(&mut state, until).timed_out() {}
    }
}

impl Nlm {
    /// Begins to wait for a lock, unless the request is waiting already or there are too many
    /// waiters.
    pub(super) fn wait_for(
        self: &Arc<Self>,
        file: &Arc<LockFile>,
        session: &Session,
        open: OpenId,
        number: u64,
        want: &Wanted,
        kind: LockKind,
    ) {
        let party = want.owner.client.counts_for(session.cred().uid);
        let waiter = Arc::new(Waiter {
            party,
            want: want.clone(),
            number,
            file: Arc::clone(file),
            cancel: Cancel::new(),
            claimed: Mutex::new(false),
        });
        let mut state = self.locks.state.lock();
        let known = state.waiters.iter().any(|w| w.want == *want);
        let theirs = state.waiters.iter().filter(|w| w.party == party).count();
        let too_many = theirs >= WAITERS_OF_PARTY || state.waiters.len() >= WAITERS_MAX;
        if known || state.shut || too_many {
            return;
        }
        state.waiters.push(Arc::clone(&waiter));
        state.threads += 1;
        drop(state);
        let (nlm, session) = (Arc::clone(self), session.clone());
        let thread = std::thread::Builder::new().name("nlm wait".into());
        let spawned = {
            let waiter = Arc::clone(&waiter);
            thread.spawn(move || {
                nlm.wait(&waiter, &session, open, kind);
                // This may drop the last reference to the file.
                drop(waiter);
                nlm.locks.thread_ended();
            })
        };
        if spawned.is_err() {
            self.end_waiter(&waiter);
            self.locks.thread_ended();
        }
    }

    fn wait(&self, waiter: &Arc<Waiter>, session: &Session, open: OpenId, kind: LockKind) {
        let Waiter { want, number, .. } = &**waiter;
        let wait = Wait::Yes(&waiter.cancel);
        let taken = session.lock(open, *number, want.range(), kind, wait);
        if taken.is_ok() {
            let told = !waiter.cancel.is_set() && granted::tell(want, kind, self.client_portmap);
            let claimed = waiter.claimed.lock();
            if !told && !*claimed {
                // A file that was removed has no locks.
                let _ = session.unlock(open, *number, want.range());
            }
        }
        self.end_waiter(waiter);
    }

    fn end_waiter(&self, waiter: &Arc<Waiter>) {
        let mut state = self.locks.state.lock();
        state.waiters.retain(|w| !Arc::ptr_eq(w, waiter));
        drop(state);
        self.locks.settle(&waiter.file, waiter.number);
    }
}

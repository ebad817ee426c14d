//! [`Wait`]: a request that is answered later (MS-SMB2 3.3.4.2), and its
//! cancellation.

use super::compound::{Broken, Reply, Security};
use super::work::Worker;
use super::{Conn, dispatch};
use crate::answer::{Answer, Failure};
use crate::budget::Taken;
use crate::config::Limits;
use crate::wire::header::flags;
use crate::wire::{Body, Header, Status};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use volary_core::Cancel;

/// One request, as far as it may be answered later.
pub(crate) struct Wait {
    conn: Arc<Conn>,
    request: Header,
    security: Security,
    cancel: Arc<Cancel>,
    /// The thread that carries it out, until it is done or parked.
    worker: Mutex<Option<Arc<Worker>>>,
    state: Mutex<State>,
    /// Others of its compound come after it.
    may_not_park: AtomicBool,
    /// Length of its message in bytes, which stays in memory while it waits.
    kept: AtomicUsize,
    /// What it takes of its user's while it waits.
    taken: Mutex<Option<[Taken; 2]>>,
}

#[derive(Default)]
enum State {
    /// Being carried out; the client has heard nothing.
    #[default]
    Fresh,
    /// Being carried out; the client knows that it takes time.
    Pending(u64),
    /// Left for [`Wait::finish`]; what is to be called if that is not to come.
    Parked(u64, Box<dyn FnOnce() + Send>),
    Done,
}

impl Wait {
    pub(super) fn new(
        conn: &Arc<Conn>,
        worker: &Arc<Worker>,
        request: &Header,
        security: &Security,
    ) -> Arc<Self> {
        Arc::new(Self {
            conn: Arc::clone(conn),
            request: *request,
            security: security.clone(),
            cancel: Arc::default(),
            worker: Mutex::new(Some(Arc::clone(worker))),
            state: Mutex::default(),
            may_not_park: AtomicBool::new(false),
            kept: AtomicUsize::new(0),
            taken: Mutex::default(),
        })
    }

    /// Others of its compound come after it, and may not be kept waiting.
    pub(super) fn forbid_parking(&self) {
        self.may_not_park.store(true, Ordering::Relaxed);
    }

    /// Set when the client cancels the request or is gone.
    pub(crate) fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// To be called, on the request's thread, before it waits: tells the client
    /// that the reply will take time, and lets another thread go on with the
    /// connection. Does so once. If too many requests wait already, or keep too many bytes, this
    /// one is cancelled instead.
    pub(crate) fn pend(self: &Arc<Self>) {
        let Some(worker) = self.worker.lock().clone() else {
            return;
        };
        let mut state = self.state.lock();
        if !matches!(*state, State::Fresh) {
            return;
        }
        let limits = self.conn.limits();
        let kept = worker.message_len.load(Ordering::Relaxed);
        self.kept.store(kept, Ordering::Relaxed);
        let has_room = self.conn.waits.bytes().saturating_add(kept) <= limits.waiting_bytes
            && self.takes(kept, limits);
        let added = has_room.then(|| self.conn.waits.add(self, limits.waiting));
        let Some(id) = added.flatten() else {
            self.conn.log_limit("requests that wait", "");
            self.cancel.set();
            return;
        };
        *state = State::Pending(id);
        drop(state);
        if self.send_interim(id, &worker).is_err() {
            self.conn.close();
        }
        if !worker.pass(&self.conn) {
            self.cancel.set();
        }
    }

    /// Whether its user may have one more that waits, and the bytes of its message.
    fn takes(&self, bytes: usize, limits: &Limits) -> bool {
        let Some(logon) = &self.security.logon else {
            return true;
        };
        let budget = &logon.budget;
        let one = budget.waiting.take(limits.waiting_per_user);
        let max = limits.waiting_bytes_per_user;
        let all = budget.waiting_bytes.take_many(bytes, max);
        *self.taken.lock() = one.zip(all).map(<[_; 2]>::from);
        self.taken.lock().is_some()
    }

    /// Leaves the request to be answered by [`finish`](Self::finish): the caller
    /// returns the failure that this gives. `ended` is called if the answer is
    /// not wanted any more (the client cancels it or is gone), and
    /// `finish` does nothing from then on. No lock that `ended` takes may be
    /// held over calls of `finish`. Only the last request of a compound can be
    /// parked: another fails, as in Windows.
    pub(crate) fn park(self: &Arc<Self>, ended: impl FnOnce() + Send + 'static) -> Failure {
        if self.may_not_park.load(Ordering::Relaxed) {
            return Status::INTERNAL_ERROR.into();
        }
        let Some(worker) = self.worker.lock().take() else {
            return Status::INTERNAL_ERROR.into();
        };
        let limits = self.conn.limits();
        let max = limits.waiting.saturating_add(limits.parked);
        let Some(id) = self.conn.waits.add(self, max) else {
            return Status::INSUFFICIENT_RESOURCES.into();
        };
        let sent = self.send_interim(id, &worker);
        *self.state.lock() = State::Parked(id, Box::new(ended));
        if sent.is_err() {
            self.conn.close();
        }
        if self.conn.is_closed() {
            self.end();
        }
        Status::PENDING.into()
    }

    /// Answers a parked request, from any thread. `false` if it has been
    /// answered or is not wanted any more.
    pub(crate) fn finish(&self, answer: Answer) -> bool {
        let mut state = self.state.lock();
        let State::Parked(id, _) = &*state else {
            return false;
        };
        let id = *id;
        *state = State::Done;
        drop(state);
        self.conn.waits.remove(id);
        self.conn.post(self.reply(id, answer.map(Body::from)));
        true
    }

    /// The reply of a request that its thread has an answer to; none if it is
    /// parked.
    pub(super) fn answered(&self, answer: Answer<Body>) -> Option<Reply> {
        self.worker.lock().take();
        self.taken.lock().take();
        let mut state = self.state.lock();
        match mem::take(&mut *state) {
            State::Fresh => {
                *state = State::Done;
                let header = dispatch::reply_header(&self.conn, &self.request);
                Some(self.reply_with(header, answer))
            }
            State::Pending(id) => {
                *state = State::Done;
                self.conn.waits.remove(id);
                Some(self.reply(id, answer))
            }
            other @ (State::Parked(..) | State::Done) => {
                *state = other;
                None
            }
        }
    }

    fn send_interim(&self, id: u64, worker: &Worker) -> Result<(), Broken> {
        let before = mem::take(&mut *worker.replies.lock());
        self.conn.send(before)?;
        let granted = self.conn.window.lock().grant(self.request.credits.max(1));
        let mut interim = self.reply(id, Err(Status::PENDING.into()));
        interim.header.credits = granted;
        // Unsigned (3.3.4.1.1): it has the final reply's message id, and so GMAC's nonce.
        interim.security.sign = false;
        self.conn.send(vec![interim])
    }

    fn reply(&self, id: u64, answer: Answer<Body>) -> Reply {
        let mut header = self.request;
        header.credits = 0;
        header.next_command = 0;
        header.flags = flags::RESPONSE | flags::ASYNC | self.request.flags & flags::PRIORITY;
        header.async_id = id;
        self.reply_with(header, answer)
    }

    fn reply_with(&self, mut header: Header, answer: Answer<Body>) -> Reply {
        let body = match answer {
            Ok(body) => {
                header.status = Status::SUCCESS.0;
                body
            }
            Err(failure) => {
                header.status = failure.status.0;
                failure.into_body().into()
            }
        };
        Reply {
            header,
            body,
            security: self.security.clone(),
        }
    }

    /// The client does not want it any more.
    fn cancel_now(&self) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Parked(..)) {
            drop(state);
            self.cancel.set();
            self.conn.server.wake_waiting();
            return;
        }
        let State::Parked(id, ended) = mem::replace(&mut *state, State::Done) else {
            return;
        };
        drop(state);
        self.conn.waits.remove(id);
        ended();
        self.conn
            .post(self.reply(id, Err(Status::CANCELLED.into())));
    }

    /// The client is gone.
    fn end(&self) {
        self.cancel.set();
        let mut state = self.state.lock();
        if !matches!(*state, State::Parked(..)) {
            return;
        }
        let State::Parked(id, ended) = mem::replace(&mut *state, State::Done) else {
            return;
        };
        drop(state);
        self.conn.waits.remove(id);
        ended();
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The requests of a connection that wait or are parked.
#[derive(Debug, Default)]
pub(super) struct Waits {
    ids: AtomicU64,
    all: Mutex<HashMap<u64, Arc<Wait>>>,
}

impl Waits {
    fn add(&self, wait: &Arc<Wait>, max: usize) -> Option<u64> {
        let mut all = self.all.lock();
        if all.len() >= max {
            return None;
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        all.insert(id, Arc::clone(wait));
        Some(id)
    }

    /// Returns the bytes of the messages of all requests that wait.
    fn bytes(&self) -> usize {
        let all = self.all.lock();
        all.values().map(|w| w.kept.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// The client sent a CANCEL (MS-SMB2 3.3.5.16) in session `session`.
    pub(super) fn cancel(&self, request: &Header, session: u64) {
        let is_meant = |(id, wait): &(&u64, &Arc<Wait>)| {
            let by_id = if request.has(flags::ASYNC) {
                **id == request.async_id
            } else {
                wait.request.message_id == request.message_id
            };
            by_id
                && wait
                    .security
                    .logon
                    .as_ref()
                    .is_some_and(|l| l.id == session)
        };
        let found = self
            .all
            .lock()
            .iter()
            .find(is_meant)
            .map(|(_, w)| Arc::clone(w));
        if let Some(wait) = found {
            wait.cancel_now();
        }
    }

    /// The connection ends.
    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.all.lock().values().cloned().collect();
        for wait in all {
            wait.end();
        }
    }
}

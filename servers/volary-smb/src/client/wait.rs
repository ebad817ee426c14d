//! [`Wait`]: a request that may be answered later (MS-SMB2 3.3.4.2), and its cancellation.

use super::waits::Waiting;
use super::{Broken, Link, Reply, Security, Worker};
use crate::answer::{Answer, Failure};
use crate::budget::Taken;
use crate::config::Limits;
use crate::wire::header::flags;
use crate::wire::{Body, Header, Status};
use parking_lot::Mutex;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::Cancel;

/// A request that may be answered later.
pub(crate) struct Wait {
    link: Arc<Link>,
    request: Header,
    security: Security,
    cancel: Arc<Cancel>,
    /// The thread that carries the request out, until it is done or parked.
    worker: Mutex<Option<Arc<Worker>>>,
    state: Mutex<State>,
    /// Whether other requests of the compound follow it.
    may_not_park: AtomicBool,
    /// The user's resources that it takes while it waits.
    taken: Mutex<Option<[Taken; 2]>>,
}

#[derive(Default)]
enum State {
    /// The request is being carried out, and the client has heard nothing.
    #[default]
    Fresh,
    /// The request is being carried out, and the client knows that it takes time.
    Pending(u64),
    /// The request waits for [`Wait::finish`]. The function is called if that is no longer needed.
    Parked(u64, Box<dyn FnOnce() + Send>),
    Done,
}

impl Wait {
    pub(crate) fn new(
        link: &Arc<Link>,
        worker: &Arc<Worker>,
        request: &Header,
        security: &Security,
    ) -> Arc<Self> {
        Arc::new(Self {
            link: Arc::clone(link),
            request: *request,
            security: security.clone(),
            cancel: Arc::default(),
            worker: Mutex::new(Some(Arc::clone(worker))),
            state: Mutex::default(),
            may_not_park: AtomicBool::new(false),
            taken: Mutex::default(),
        })
    }

    /// Forbids parking, because other requests of the compound follow and must not wait.
    pub(crate) fn forbid_parking(&self) {
        self.may_not_park.store(true, Ordering::Relaxed);
    }

    /// Returns the cancel token, which is set when the client cancels the request or is gone.
    pub(crate) fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// Tells the client that the reply will take time, and lets another thread continue with the
    /// connection. The request's thread must call this before it waits. Only the first call has an
    /// effect. If too many requests are waiting, or they keep too many bytes, this one is cancelled
    /// instead.
    pub(crate) fn pend(self: &Arc<Self>) {
        let Some(worker) = self.worker.lock().clone() else {
            return;
        };
        let mut state = self.state.lock();
        if !matches!(*state, State::Fresh) {
            return;
        }
        let limits = self.link.limits();
        let kept = worker.message_len.load(Ordering::Relaxed);
        let has_room = self.link.waits.bytes().saturating_add(kept) <= limits.waiting_bytes
            && self.takes(kept, limits);
        let added = has_room.then(|| self.add(kept, limits.waiting));
        let Some(id) = added.flatten() else {
            self.link.log_limit("requests that wait", "");
            self.cancel.set();
            return;
        };
        *state = State::Pending(id);
        drop(state);
        if self.send_interim(id, &worker).is_err() {
            self.link.close();
        }
        if !worker.pass(&self.link.turn) {
            self.cancel.set();
        }
    }

    /// Adds the request to those that are answered later.
    fn add(self: &Arc<Self>, bytes: usize, max: usize) -> Option<u64> {
        let session = self.security.logon.as_ref().map(|logon| logon.id);
        let wait = Arc::clone(self);
        self.link
            .waits
            .add(wait, &self.request, session, bytes, max)
    }

    /// Returns whether its user may have one more waiting request, with the bytes of its message.
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

    /// Leaves the request to be answered by [`finish`](Self::finish). The caller must return the
    /// failure that this returns.
    ///
    /// `ended` is called if the client cancels the request or is gone. `finish` does nothing
    /// afterwards. No lock that `ended` takes may be held during calls of `finish`.
    ///
    /// Only the last request of a compound can be parked. Another one fails, as on Windows.
    pub(crate) fn park(self: &Arc<Self>, ended: impl FnOnce() + Send + 'static) -> Failure {
        if self.may_not_park.load(Ordering::Relaxed) {
            return Status::INTERNAL_ERROR.into();
        }
        let Some(worker) = self.worker.lock().take() else {
            return Status::INTERNAL_ERROR.into();
        };
        let limits = self.link.limits();
        let max = limits.waiting.saturating_add(limits.parked);
        let Some(id) = self.add(0, max) else {
            return Status::INSUFFICIENT_RESOURCES.into();
        };
        let sent = self.send_interim(id, &worker);
        *self.state.lock() = State::Parked(id, Box::new(ended));
        if sent.is_err() {
            self.link.close();
        }
        if self.link.is_closed() {
            self.end();
        }
        Status::PENDING.into()
    }

    /// Answers a parked request, from any thread. Returns `false` if it was already answered or is
    /// no longer wanted.
    pub(crate) fn finish(&self, answer: Answer) -> bool {
        let mut state = self.state.lock();
        let State::Parked(id, _) = &*state else {
            return false;
        };
        let id = *id;
        *state = State::Done;
        drop(state);
        self.link.waits.remove(id);
        self.link.post(self.reply(id, answer.map(Body::from)));
        true
    }

    /// Returns the reply for a request whose thread has an answer. Returns `None` if the request is
    /// parked.
    pub(crate) fn answered(&self, answer: Answer<Body>) -> Option<Reply> {
        self.worker.lock().take();
        self.taken.lock().take();
        let mut state = self.state.lock();
        match mem::take(&mut *state) {
            State::Fresh => {
                *state = State::Done;
                let header = self.link.reply_header(&self.request);
                Some(self.reply_with(header, answer))
            }
            State::Pending(id) => {
                *state = State::Done;
                self.link.waits.remove(id);
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
        self.link.send(before)?;
        let granted = self.link.window.lock().grant(self.request.credits.max(1));
        let mut interim = self.reply(id, Err(Status::PENDING.into()));
        interim.header.credits = granted;
        // It is unsigned (3.3.4.1.1), because it has the final reply's message id, and so its GMAC
        // nonce.
        interim.security.sign = false;
        self.link.send(vec![interim])
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
}

impl Waiting for Wait {
    fn cancel_now(&self) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Parked(..)) {
            drop(state);
            self.cancel.set();
            self.link.shared.wake_waiting();
            return;
        }
        let State::Parked(id, ended) = mem::replace(&mut *state, State::Done) else {
            return;
        };
        drop(state);
        self.link.waits.remove(id);
        ended();
        self.link
            .post(self.reply(id, Err(Status::CANCELLED.into())));
    }

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
        self.link.waits.remove(id);
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

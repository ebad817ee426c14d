//! [`Watch`]: a directory that a client watches, and the changes there since the client's last
//! request.

use crate::answer::{Answer, Failure};
use crate::budget::Taken;
use crate::client::Wait;
use crate::files::names::to_utf16;
use crate::wire::fscc::notify::{self, Action};
use crate::wire::{Out, Status, out::len32};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use volary_core::NodeId;

/// `CompletionFilter`.
pub(crate) mod filter {
    pub(crate) const FILE_NAME: u32 = 0x1;
    pub(crate) const DIR_NAME: u32 = 0x2;
    pub(crate) const ATTRIBUTES: u32 = 0x4;
    pub(crate) const SIZE: u32 = 0x8;
    pub(crate) const LAST_WRITE: u32 = 0x10;
    pub(crate) const LAST_ACCESS: u32 = 0x20;
    pub(crate) const CREATION: u32 = 0x40;
    pub(crate) const EA: u32 = 0x80;
    pub(crate) const SECURITY: u32 = 0x100;
}

/// The most changes that are stored for a watch.
const KEPT_MAX: usize = 4096;
/// The most bytes of changes that are stored for all watches of a share.
const BYTES_MAX: usize = 16 << 20;

/// A directory that a client watches.
#[derive(Debug)]
pub(crate) struct Watch<F> {
    /// The open by which it is watched.
    pub(crate) file: Weak<F>,
    pub(crate) node: NodeId,
    pub(crate) filter: u32,
    /// Whether it includes the whole tree below.
    pub(crate) tree: bool,
    /// The most bytes of changes that are stored.
    pub(crate) max: usize,
    state: Mutex<State>,
    /// Its key in the index, which is changed under the index's lock.
    pub(crate) key: AtomicU64,
    /// Bytes of changes that are stored for all watches of the share.
    bytes: Arc<AtomicUsize>,
    /// Its share of the user's limit on watches.
    _taken: Taken,
}

impl<F> Drop for Watch<F> {
    fn drop(&mut self) {
        self.state.get_mut().take(&self.bytes);
    }
}

#[derive(Debug, Default)]
struct State {
    noted: Noted,
    waiting: VecDeque<(Arc<Wait>, usize)>,
    ended: bool,
}

/// The changes that no client has been told of.
#[derive(Debug, Default)]
struct Noted {
    changes: Vec<(Action, Vec<u8>)>,
    len: usize,
    /// More changes occurred than could be stored.
    overflown: bool,
}

impl<F: Send + Sync + 'static> Watch<F> {
    /// Returns a watch of a directory by an open of it. `taken` is its share of the user's limit.
    /// `bytes` counts what is stored for all watches of the share.
    pub(crate) fn new(
        file: &Arc<F>,
        node: NodeId,
        filter: u32,
        tree: bool,
        max: usize,
        bytes: &Arc<AtomicUsize>,
        taken: Taken,
    ) -> Self {
        Self {
            file: Arc::downgrade(file),
            node,
            filter,
            tree,
            max,
            state: Mutex::default(),
            key: AtomicU64::new(0),
            bytes: Arc::clone(bytes),
            _taken: taken,
        }
    }

    /// Answers with the stored changes, or parks the request.
    pub(crate) fn ask(self: &Arc<Self>, wait: &Arc<Wait>, max: usize) -> Answer {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Status::NOTIFY_CLEANUP.into());
        }
        if !state.noted.is_empty() {
            return state.take(&self.bytes).answer(max);
        }
        drop(state);
        let (this, parked) = (Arc::downgrade(self), Arc::downgrade(wait));
        let failure = wait.park(move || {
            if let Some(this) = this.upgrade() {
                this.forget(&parked);
            }
        });
        // The request must be parked first, because whoever finds it in the list may answer it at
        // once.
        if failure.status == Status::PENDING {
            self.wait(wait, max);
        }
        Err(failure)
    }

    /// Adds a parked request to the list. Answers it if there was a change meanwhile.
    fn wait(&self, wait: &Arc<Wait>, max: usize) {
        let mut state = self.state.lock();
        let ended = state.ended;
        if !ended {
            state.waiting.push_back((Arc::clone(wait), max));
        }
        drop(state);
        if ended {
            wait.finish(Err(told(Status::NOTIFY_CLEANUP)));
        }
        self.answer();
    }

    fn forget(&self, wait: &Weak<Wait>) {
        let mut state = self.state.lock();
        state
            .waiting
            .retain(|(other, _)| !std::ptr::eq(Arc::as_ptr(other), wait.as_ptr()));
    }

    /// Stores changes that belong together, and answers waiting requests.
    pub(crate) fn note(&self, changes: &[(Action, Vec<u8>)]) {
        let mut state = self.state.lock();
        for (action, name) in changes {
            let name = to_utf16(name);
            let more = name.len().saturating_add(12);
            let all = self.bytes.fetch_add(more, Ordering::Relaxed);
            let noted = &mut state.noted;
            noted.len = noted.len.saturating_add(more);
            let full = noted.len > self.max || noted.changes.len() >= KEPT_MAX;
            if full || noted.overflown || all > BYTES_MAX {
                state.take(&self.bytes);
                state.noted.overflown = true;
            } else {
                noted.changes.push((*action, name));
            }
        }
        drop(state);
        self.answer();
    }

    fn answer(&self) {
        loop {
            let mut state = self.state.lock();
            if state.noted.is_empty() {
                return;
            }
            let Some((wait, max)) = state.waiting.pop_front() else {
                return;
            };
            let noted = state.take(&self.bytes);
            drop(state);
            if !wait.finish(noted.answer(max)) {
                self.state.lock().put_back(noted, &self.bytes);
            }
        }
    }

    /// Notes only that something has changed.
    pub(crate) fn overflow(&self) {
        self.state.lock().noted.overflown = true;
        self.answer();
    }

    /// Answers all waiting requests with this status.
    pub(crate) fn end(&self, status: Status) {
        let mut state = self.state.lock();
        state.ended |= status == Status::NOTIFY_CLEANUP;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for (wait, _) in waiting {
            wait.finish(Err(told(status)));
        }
    }
}

impl State {
    /// Takes the changes, and subtracts them from `bytes`.
    fn take(&mut self, bytes: &AtomicUsize) -> Noted {
        bytes.fetch_sub(self.noted.len, Ordering::Relaxed);
        std::mem::take(&mut self.noted)
    }

    /// Puts changes back that no client was told of, before those noted meanwhile.
    fn put_back(&mut self, mut noted: Noted, bytes: &AtomicUsize) {
        bytes.fetch_add(noted.len, Ordering::Relaxed);
        let newer = std::mem::take(&mut self.noted);
        noted.changes.extend(newer.changes);
        noted.len += newer.len;
        noted.overflown |= newer.overflown;
        self.noted = noted;
    }
}

impl Noted {
    fn is_empty(&self) -> bool {
        !self.overflown && self.changes.is_empty()
    }

    /// Returns the answer to a request that has room for `max` bytes.
    fn answer(&self, max: usize) -> Answer {
        let list = match self.overflown {
            true => None,
            false => notify::list(&self.changes, max),
        };
        match list {
            Some(list) => Ok(reply(&list)),
            None => Err(told(Status::NOTIFY_ENUM_DIR)),
        }
    }
}

/// Returns a reply without changes, with a status that is not an error.
fn told(status: Status) -> Failure {
    Failure::with_body(status, reply(&[]))
}

fn reply(list: &[u8]) -> Vec<u8> {
    const LIST_AT: u16 = 64 + 8;
    let mut out = Out::with_capacity(list.len().saturating_add(8));
    out.u16(9);
    out.u16(if list.is_empty() { 0 } else { LIST_AT });
    out.u32(len32(list.len())).bytes(list);
    out.done()
}

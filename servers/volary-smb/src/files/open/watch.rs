//! [`Watch`]: a directory that a client watches, and what has changed there since it asked last.

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

/// Most changes that are kept for a watch.
const KEPT_MAX: usize = 4096;
/// Most bytes of changes that are kept for all watches of a share.
const BYTES_MAX: usize = 16 << 20;

/// A directory that a client watches.
#[derive(Debug)]
pub(crate) struct Watch<F> {
    /// The open by which it is watched.
    pub(crate) file: Weak<F>,
    pub(crate) node: NodeId,
    pub(crate) filter: u32,
    /// It is of all that is below as well.
    pub(crate) tree: bool,
    /// Bytes of changes that are kept.
    pub(crate) max: usize,
    state: Mutex<State>,
    /// Where it is in the index; changed under its lock.
    pub(crate) key: AtomicU64,
    /// Bytes of changes that are kept for all watches of the share.
    bytes: Arc<AtomicUsize>,
    /// One of what its user may have.
    _taken: Taken,
}

impl<F> Drop for Watch<F> {
    fn drop(&mut self) {
        self.state.get_mut().clear(&self.bytes);
    }
}

#[derive(Debug, Default)]
struct State {
    changes: Vec<(Action, Vec<u8>)>,
    len: usize,
    /// More happened than could be kept.
    overflown: bool,
    waiting: VecDeque<(Arc<Wait>, usize)>,
    ended: bool,
}

impl<F: Send + Sync + 'static> Watch<F> {
    /// Returns a watch of a directory by an open of it, which takes one of what its user may have; `bytes`
    /// counts what is kept for all watches of the share.
    pub(crate) fn new(
        file: &Arc<F>,
        node: NodeId,
        (filter, tree, max): (u32, bool, usize),
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

    /// Answers with what has changed, or later.
    pub(crate) fn ask(self: &Arc<Self>, wait: &Arc<Wait>, max: usize) -> Answer {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Status::NOTIFY_CLEANUP.into());
        }
        if state.overflown || !state.changes.is_empty() {
            return state.take(max, &self.bytes);
        }
        drop(state);
        let (this, parked) = (Arc::downgrade(self), Arc::downgrade(wait));
        let failure = wait.park(move || {
            if let Some(this) = this.upgrade() {
                this.forget(&parked);
            }
        });
        // Whoever finds it among those that wait can answer it: it is parked before.
        if failure.status == Status::PENDING {
            self.wait(wait, max);
        }
        Err(failure)
    }

    /// Lets a parked request wait, for what has changed since as well.
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

    /// Notes changes of one moment and answers who waits.
    pub(crate) fn note(&self, changes: &[(Action, Vec<u8>)]) {
        let mut state = self.state.lock();
        for (action, name) in changes {
            let name = to_utf16(name);
            let more = name.len().saturating_add(12);
            let all = self.bytes.fetch_add(more, Ordering::Relaxed);
            state.len = state.len.saturating_add(more);
            let full = state.len > self.max || state.changes.len() >= KEPT_MAX;
            if full || state.overflown || all > BYTES_MAX {
                state.clear(&self.bytes);
                state.overflown = true;
            } else {
                state.changes.push((*action, name));
            }
        }
        drop(state);
        self.answer();
    }

    fn answer(&self) {
        loop {
            let mut state = self.state.lock();
            if !state.overflown && state.changes.is_empty() {
                return;
            }
            let Some((wait, max)) = state.waiting.pop_front() else {
                return;
            };
            let kept = (state.changes.clone(), state.len, state.overflown);
            let answer = state.take(max, &self.bytes);
            drop(state);
            if !wait.finish(answer) {
                let mut state = self.state.lock();
                state.clear(&self.bytes);
                self.bytes.fetch_add(kept.1, Ordering::Relaxed);
                (state.changes, state.len, state.overflown) = kept;
            }
        }
    }

    /// Says no more than that something has changed.
    pub(crate) fn overflow(&self) {
        self.state.lock().overflown = true;
        self.answer();
    }

    /// Sends away those who wait.
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
    /// Forgets what has changed, of which `bytes` has count.
    fn clear(&mut self, bytes: &AtomicUsize) -> Vec<(Action, Vec<u8>)> {
        bytes.fetch_sub(std::mem::take(&mut self.len), Ordering::Relaxed);
        std::mem::take(&mut self.changes)
    }

    fn take(&mut self, max: usize, bytes: &AtomicUsize) -> Answer {
        let changes = self.clear(bytes);
        let overflown = std::mem::take(&mut self.overflown);
        let list = if overflown {
            None
        } else {
            notify::list(&changes, max)
        };
        match list {
            Some(list) => Ok(reply(&list)),
            None => Err(told(Status::NOTIFY_ENUM_DIR)),
        }
    }
}

/// Returns an answer that is no error, without changes.
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

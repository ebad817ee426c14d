//! Reading ahead: several threads make requests in the order of the device, and answers come in
//! that order.

use crate::interface::summary::Tally;
use crate::listing::list::{Done, Piece};
use crate::listing::plan::{Merge, Span};
use crate::state::budget::{Budget, Buf};
use crate::state::part::Tuned;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{BlockDevice, Kind, Result};

/// Requests that several threads read ahead.
pub(crate) struct Ahead<'a> {
    pub(crate) device: &'a dyn BlockDevice,
    pub(crate) pieces: &'a [Piece],
    pub(crate) done: &'a Done,
    pub(crate) merge: Merge,
    pub(crate) budget: &'a Arc<Budget>,
    pub(crate) tally: &'a Tally,
    /// The most requests that may be begun and not yet taken. More would only take memory.
    most: u64,
    issue: Mutex<Issue>,
    ready: Mutex<Ready>,
    /// Signals that something was read.
    arrived: Condvar,
    /// Signals that something was taken.
    taken: Condvar,
}

/// The next request.
#[derive(Default)]
struct Issue {
    from: usize,
    number: u64,
}

#[derive(Default)]
struct Ready {
    loaded: BTreeMap<u64, Loaded>,
    /// The number of requests, once it is known.
    count: Option<u64>,
    /// How many answers were taken.
    taken: u64,
}

/// A request, and its answer.
pub(crate) struct Loaded {
    pub(crate) span: Span,
    /// The buffer, and the offset of the span in it.
    pub(crate) data: Result<(Arc<Buf>, usize)>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(
        device: &'a dyn BlockDevice,
        pieces: &'a [Piece],
        done: &'a Done,
        merge: Merge,
        depth: usize,
        budget: &'a Arc<Budget>,
        tally: &'a Tally,
    ) -> Self {
        Self {
            device,
            pieces,
            done,
            merge,
            budget,
            tally,
            most: requests(depth),
            issue: Mutex::default(),
            ready: Mutex::default(),
            arrived: Condvar::new(),
            taken: Condvar::new(),
        }
    }

    /// Runs on each thread: reads until there is nothing more to read, or the budget is closed.
    pub(crate) fn work(&self) {
        while let Some((number, span, buf)) = self.begin() {
            let data = buf.and_then(|buf| load(self.device, &span, buf));
            let mut ready = self.ready.lock();
            ready.loaded.insert(number, Loaded { span, data });
            drop(ready);
            self.arrived.notify_all();
        }
    }

    /// Returns the next request and its buffer. Threads wait for memory in the order of requests:
    /// the one that is needed first gets it first.
    fn begin(&self) -> Option<(u64, Span, Result<Buf>)> {
        let mut issue = self.issue.lock();
        let Some(span) = self.merge.next(self.pieces, self.done, issue.from) else {
            self.end(issue.number);
            return None;
        };
        let buf = self
            .turn(issue.number)
            .then(|| room(self.device, self.budget, span.len, self.merge.request));
        let buf = match buf.flatten() {
            Some(buf) => Ok(buf),
            None if self.budget.is_closed() => {
                self.end(issue.number);
                return None;
            }
            None => Err(Kind::TooBig.into()),
        };
        issue.from = span.pieces.end;
        issue.number += 1;
        self.tally.read(span.pieces.len() as u64, span.len);
        Some((issue.number - 1, span, buf))
    }

    /// Waits until few enough answers are waiting to be taken. Returns false once the budget is
    /// closed.
    fn turn(&self, number: u64) -> bool {
        let mut ready = self.ready.lock();
        while number >= ready.taken + self.most && !self.budget.is_closed() {
            self.taken.wait(&mut ready);
        }
        !self.budget.is_closed()
    }

    /// Sets the number of requests.
    fn end(&self, count: u64) {
        self.ready.lock().count = Some(count);
        self.arrived.notify_all();
    }

    /// Wakes the threads that wait for their turn, as nobody takes answers any more.
    pub(crate) fn stop(&self) {
        let _ready = self.ready.lock();
        self.taken.notify_all();
    }

    /// Waits for the answer to a request, by its number. Returns `None` after the last one, and if
    /// the budget is closed.
    pub(crate) fn wait(&self, number: u64) -> Option<Loaded> {
        let mut ready = self.ready.lock();
        loop {
            if let Some(loaded) = ready.loaded.remove(&number) {
                ready.taken = number + 1;
                self.taken.notify_one();
                return Some(loaded);
            }
            if ready.count.is_some_and(|count| number >= count) || self.budget.is_closed() {
                return None;
            }
            self.arrived.wait(&mut ready);
        }
    }
}

/// The alignment of memory for a device whose reads bypass the page cache.
const ALIGN: usize = 4096;

/// Returns by how many bytes a buffer exceeds its request, so that both can be aligned.
fn around(device: &dyn BlockDevice) -> u64 {
    match device.is_cached() {
        true => 0,
        false => ALIGN as u64 + 2 * u64::from(device.geometry().sector),
    }
}

/// Returns the most requests that may be begun and not yet taken.
fn requests(depth: usize) -> u64 {
    depth as u64 + 2
}

/// Returns the most memory that requests take at a time, if each is freed before the next one is
/// taken.
pub(crate) fn most(device: &dyn BlockDevice, tuned: Tuned, fragment: u64) -> u64 {
    let count = match is_alone(device, tuned) {
        true => 1,
        false => requests(tuned.depth),
    };
    (count * tuned.request).max(fragment) + count * around(device)
}

/// Returns whether requests are made one at a time: the host reads ahead by itself, or a depth of
/// one was set.
pub(crate) fn is_alone(device: &dyn BlockDevice, tuned: Tuned) -> bool {
    device.is_cached() || tuned.depth == 1
}

/// Returns a buffer for a request. All but small ones get the largest size, so that a later request
/// can reuse the buffer.
pub(crate) fn room(
    device: &dyn BlockDevice,
    budget: &Arc<Budget>,
    len: u64,
    most: u64,
) -> Option<Buf> {
    let around = around(device);
    match len >= most / 4 && len < most {
        true => budget.buffer_of(len + around, most + around),
        false => budget.buffer(len + around),
    }
}

/// Reads a request into a buffer from [`room`], extended to whole sectors. So a device that
/// bypasses the page cache needs no buffer of its own. Returns the buffer and the offset of the
/// request in it.
pub(crate) fn load(
    device: &dyn BlockDevice,
    span: &Span,
    mut buf: Buf,
) -> Result<(Arc<Buf>, usize)> {
    if device.is_cached() {
        device.read_at(span.at, &mut buf.bytes)?;
        return Ok((Arc::new(buf), 0));
    }
    let geometry = device.geometry();
    let sector = u64::from(geometry.sector);
    let first = span.at - span.at % sector;
    let end = (span.at + span.len).next_multiple_of(sector);
    let len = usize::try_from(end.min(geometry.size) - first).unwrap_or(usize::MAX);
    let from = buf.bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
    let into = buf.bytes.get_mut(from..).and_then(|all| all.get_mut(..len));
    device.read_at(first, into.ok_or(Kind::TooBig)?)?;
    let skipped = usize::try_from(span.at - first).unwrap_or(usize::MAX);
    Ok((Arc::new(buf), from + skipped))
}

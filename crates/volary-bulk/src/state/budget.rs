//! Accounting of memory: a request beyond the bound waits or is refused.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory that all budgets of a run have given out together.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    used: AtomicU64,
    peak: AtomicU64,
}

impl Meter {
    pub(crate) fn add(&self, len: u64) {
        let used = self.used.fetch_add(len, Ordering::Relaxed) + len;
        self.peak.fetch_max(used, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, len: u64) {
        self.used.fetch_sub(len, Ordering::Relaxed);
    }

    /// Returns the most memory in use at any time.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// A share of the memory.
pub(crate) struct Budget {
    meter: Arc<Meter>,
    /// Whether freed buffers are kept for reuse.
    keeps: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The most bytes that it gives out.
    max: u64,
    /// Bytes that users hold.
    used: u64,
    /// Bytes of the buffers in `kept`, which were given back and can be reused.
    spare: u64,
    kept: Vec<Vec<u8>>,
    is_closed: bool,
}

impl State {
    /// Frees kept buffers until `len` bytes are available. Returns whether they are.
    fn has(&mut self, len: u64, meter: &Meter) -> bool {
        while self.used + self.spare + len > self.max {
            let Some(bytes) = self.kept.pop() else {
                return false;
            };
            self.spare -= bytes.capacity() as u64;
            meter.sub(bytes.capacity() as u64);
        }
        true
    }
}

/// The least size of buffers that are kept: for each new one, the kernel must find and clear every
/// page.
const WORTH_KEEPING: usize = 64 << 10;

impl Budget {
    pub(crate) fn new(max: u64, meter: &Arc<Meter>) -> Arc<Self> {
        Self::with(max, meter, false)
    }

    /// Returns a budget that keeps freed buffers until their memory is needed.
    pub(crate) fn keeping(max: u64, meter: &Arc<Meter>) -> Arc<Self> {
        Self::with(max, meter, true)
    }

    fn with(max: u64, meter: &Arc<Meter>, keeps: bool) -> Arc<Self> {
        let state = State {
            max,
            ..State::default()
        };
        Arc::new(Self {
            meter: meter.clone(),
            keeps,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Sets the bound to `max` bytes. Nobody may hold any memory of this budget.
    pub(crate) fn set_max(&self, max: u64) {
        let mut state = self.state.lock();
        state.max = max;
        // Kept buffers must fit too.
        state.has(0, &self.meter);
    }

    /// Returns the most bytes that it gives out.
    pub(crate) fn max(&self) -> u64 {
        self.state.lock().max
    }

    /// Waits until `len` bytes are available. Returns `None` if the budget is closed, or smaller
    /// than that.
    pub(crate) fn take(self: &Arc<Self>, len: u64) -> Option<Held> {
        let mut state = self.state.lock();
        if len > state.max {
            return None;
        }
        while !state.is_closed && !state.has(len, &self.meter) {
            self.changed.wait(&mut state);
        }
        if state.is_closed {
            return None;
        }
        Some(self.hold(&mut state, len))
    }

    /// Takes `len` bytes without waiting. Returns `None` if they are not free now.
    pub(crate) fn try_take(self: &Arc<Self>, len: u64) -> Option<Held> {
        let mut state = self.state.lock();
        let fits = !state.is_closed && state.has(len, &self.meter);
        fits.then(|| self.hold(&mut state, len))
    }

    /// Returns a buffer to read `len` bytes into, with undefined content. Waits as
    /// [`take`](Self::take) does.
    pub(crate) fn buffer(self: &Arc<Self>, len: u64) -> Option<Buf> {
        self.buffer_of(len, len)
    }

    /// Returns a buffer for `len` bytes and takes `room` bytes for it, so that a later user can get
    /// a longer buffer.
    pub(crate) fn buffer_of(self: &Arc<Self>, len: u64, room: u64) -> Option<Buf> {
        let count = usize::try_from(len).ok()?;
        if let Some(buf) = self.kept(count) {
            return Some(buf);
        }
        let held = self.take(room)?;
        let mut buf = Buf::new(usize::try_from(room).ok()?, held);
        buf.bytes.truncate(count);
        Some(buf)
    }

    /// Returns a buffer without waiting. Returns `None` if the memory is not free now.
    pub(crate) fn try_buffer(self: &Arc<Self>, len: u64) -> Option<Buf> {
        let count = usize::try_from(len).ok()?;
        let kept = self.kept(count);
        kept.or_else(|| Some(Buf::new(count, self.try_take(len)?)))
    }

    /// Returns a kept buffer that has room for `len` bytes, if there is one.
    fn kept(self: &Arc<Self>, len: usize) -> Option<Buf> {
        let mut state = self.state.lock();
        let at = state
            .kept
            .iter()
            .position(|bytes| bytes.capacity() >= len)?;
        let mut bytes = state.kept.swap_remove(at);
        let room = bytes.capacity() as u64;
        state.spare -= room;
        state.used += room;
        drop(state);
        bytes.resize(len, 0);
        let held = Held {
            budget: self.clone(),
            len: room,
        };
        Some(Buf { bytes, held })
    }

    fn hold(self: &Arc<Self>, state: &mut State, len: u64) -> Held {
        state.used += len;
        self.meter.add(len);
        Held {
            budget: self.clone(),
            len,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Closes the budget: whoever waits gets `None`.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Memory that was given out. Dropping it gives it back.
pub(crate) struct Held {
    budget: Arc<Budget>,
    len: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.budget.meter.sub(self.len);
        self.budget.state.lock().used -= self.len;
        self.budget.changed.notify_all();
    }
}

/// A buffer whose memory is accounted for.
pub(crate) struct Buf {
    pub(crate) bytes: Vec<u8>,
    held: Held,
}

impl Buf {
    /// Returns a buffer of zeros. `held` is the memory that was taken for it.
    pub(crate) fn new(len: usize, held: Held) -> Self {
        Self {
            bytes: vec![0; len],
            held,
        }
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let room = bytes.capacity();
        // The accounting does not cover a buffer that has grown.
        let keeps = self.held.budget.keeps && room >= WORTH_KEEPING;
        if !keeps || room as u64 != self.held.len {
            return;
        }
        let budget = &self.held.budget;
        let mut state = budget.state.lock();
        state.used -= self.held.len;
        state.spare += self.held.len;
        state.kept.push(bytes);
        drop(state);
        // The buffer is kept, so its memory stays counted.
        budget.changed.notify_all();
        self.held.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_until_something_is_given_back() {
        let meter = Arc::new(Meter::default());
        let budget = Budget::new(10, &meter);
        assert!(budget.take(11).is_none());
        let first = budget.take(7).unwrap();
        assert!(budget.try_take(4).is_none());
        std::thread::scope(|s| {
            let waits = s.spawn(|| budget.take(4).is_some());
            drop(first);
            assert!(waits.join().unwrap());
        });
        assert_eq!(meter.peak(), 7);
    }

    #[test]
    fn buffers_are_kept_until_their_memory_is_wanted_for_something_else() {
        let meter = Arc::new(Meter::default());
        let budget = Budget::keeping(1 << 20, &meter);
        let first = budget.buffer(512 << 10).unwrap();
        let place = first.bytes.as_ptr();
        drop(first);
        let second = budget.buffer(300 << 10).unwrap();
        assert_eq!(
            (second.bytes.as_ptr(), second.bytes.len()),
            (place, 300 << 10)
        );
        assert!(budget.try_take(600 << 10).is_none());
        drop(second);
        assert!(budget.try_take(600 << 10).is_some());
        assert_eq!(meter.peak(), 600 << 10);
    }

    #[test]
    fn nobody_waits_for_a_closed_budget() {
        let budget = Budget::new(10, &Arc::default());
        let _all = budget.take(10);
        std::thread::scope(|s| {
            let waits = s.spawn(|| budget.take(1).is_none());
            budget.close();
            assert!(waits.join().unwrap());
        });
    }
}

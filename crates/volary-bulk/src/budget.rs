//! Memory that is counted: what would take more than there is waits, or does without.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all budgets of a run have given out together.
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

    /// The most at a time.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// A part of the memory.
pub(crate) struct Budget {
    meter: Arc<Meter>,
    max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    used: u64,
    is_closed: bool,
}

impl Budget {
    pub(crate) fn new(max: u64, meter: &Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            meter: meter.clone(),
            max,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Waits until there are `len` bytes. `None` if the budget is closed, or if there will never be
    /// so many.
    pub(crate) fn take(self: &Arc<Self>, len: u64) -> Option<Held> {
        if len > self.max {
            return None;
        }
        let mut state = self.state.lock();
        while !state.is_closed && state.used + len > self.max {
            self.changed.wait(&mut state);
        }
        if state.is_closed {
            return None;
        }
        Some(self.hold(&mut state, len))
    }

    /// `None` if there are not so many now.
    pub(crate) fn try_take(self: &Arc<Self>, len: u64) -> Option<Held> {
        let mut state = self.state.lock();
        let fits = !state.is_closed && len <= self.max && state.used + len <= self.max;
        fits.then(|| self.hold(&mut state, len))
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

    /// Nobody waits any more.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Memory that was given out, until it is dropped.
pub(crate) struct Held {
    budget: Arc<Budget>,
    len: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.meter.sub(self.len);
        self.budget.state.lock().used -= self.len;
        self.budget.changed.notify_all();
    }
}

/// Bytes that are counted.
pub(crate) struct Buf {
    pub(crate) bytes: Vec<u8>,
    _held: Held,
}

impl Buf {
    /// Zeros, as many as the user holds memory for.
    pub(crate) fn new(len: usize, held: Held) -> Self {
        Self {
            bytes: vec![0; len],
            _held: held,
        }
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

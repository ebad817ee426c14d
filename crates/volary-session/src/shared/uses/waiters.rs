//! Who waits for leases to be given up: how many, and when they are to look again.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use volary_core::{Kind, Result};

/// Those who wait.
pub(crate) struct Waiters {
    count: AtomicUsize,
    max: usize,
    /// Grows when they are to look again.
    wakes: AtomicU64,
    shut: AtomicBool,
}

/// One who waits, until it is dropped.
pub(super) struct Waiter<'a>(&'a Waiters);

impl Waiters {
    /// Lets `max` wait at a time.
    pub(super) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            wakes: AtomicU64::new(0),
            shut: AtomicBool::new(false),
        }
    }

    /// Returns how many wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Adds one who waits.
    ///
    /// # Errors
    /// `Busy` if too many do.
    pub(super) fn enter(&self) -> Result<Waiter<'_>> {
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        // Dropped, it is counted no longer.
        let waiter = Waiter(self);
        match before < self.max {
            true => Ok(waiter),
            false => Err(Kind::Busy.into()),
        }
    }

    /// Returns how often the waiters were woken.
    pub(super) fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::SeqCst)
    }

    /// Notes that they are to look again.
    pub(super) fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets nobody wait from now on.
    pub(super) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::SeqCst)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

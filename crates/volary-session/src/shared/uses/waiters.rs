//! The callers that wait for leases to be given up: how many, and whether any may.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use volary_core::{Kind, Result};

/// The callers that wait for leases.
pub(crate) struct Waiters {
    count: AtomicUsize,
    max: usize,
    shut: AtomicBool,
}

/// One waiting caller, counted until it is dropped.
pub(super) struct Waiter<'a>(&'a Waiters);

impl Waiters {
    /// Allows `max` waiting callers at a time.
    pub(super) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            shut: AtomicBool::new(false),
        }
    }

    /// Returns how many callers wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Counts one more waiting caller.
    ///
    /// # Errors
    /// `Busy` if too many wait.
    pub(super) fn enter(&self) -> Result<Waiter<'_>> {
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        // Dropping it, also on the error below, decrements the count.
        let waiter = Waiter(self);
        match before < self.max {
            true => Ok(waiter),
            false => Err(Kind::Busy.into()),
        }
    }

    /// Forbids all waits from now on.
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

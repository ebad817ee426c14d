//! [`Own`]: what belongs to the process that opened it.

use crate::error::Failure;
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use volary::Kind;

/// Something of one process. A fork has a copy of it without the threads that it needs, with locks that nobody gives
/// back, and with changes that the other process is to write: it must neither use it nor end it.
pub(crate) struct Own<T: Send> {
    it: ManuallyDrop<Mutex<Option<T>>>,
    process: u32,
}

impl<T: Send> Own<T> {
    /// Returns what this process owns.
    pub(crate) fn new(it: T) -> Self {
        Self {
            it: ManuallyDrop::new(Mutex::new(Some(it))),
            process: std::process::id(),
        }
    }

    /// Does `work` with it. Others wait meanwhile.
    ///
    /// # Errors
    /// `Stale` in a fork, and once it was taken; of `work`.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        work(self.lock()?.as_mut().ok_or_else(closed)?)
    }

    /// Does `work` with what there is: nothing, once it was taken.
    ///
    /// # Errors
    /// `Stale` in a fork; of `work`.
    pub(crate) fn with_any<R>(
        &self,
        work: impl FnOnce(Option<&mut T>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        work(self.lock()?.as_mut())
    }

    /// Takes it out: whoever comes later finds it closed. `None` if it was, and in a fork.
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().ok()?.take()
    }

    /// Returns whether it can be used.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().is_ok_and(|it| it.is_some())
    }

    /// In a fork the lock itself is not touched: a thread of the other process may have had it.
    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Failure> {
        match self.process == std::process::id() {
            true => Ok(self.it.lock()),
            false => Err(forked()),
        }
    }
}

fn closed() -> Failure {
    Failure::new(Kind::Stale, "it is closed")
}

/// Returns the error for use in a fork.
fn forked() -> Failure {
    let words =
        "opened before this process was forked off another; open the volume again in this process";
    Failure::new(Kind::Stale, words)
}

impl<T: Send> Drop for Own<T> {
    fn drop(&mut self) {
        if let Some(it) = self.take() {
            unlocked(move || drop(it));
        }
    }
}

/// Does `work` without the interpreter's lock, which this thread has if Python let go of an object.
fn unlocked(work: impl FnOnce() + Send) {
    let mut work = Some(work);
    let mut once = || {
        if let Some(work) = work.take() {
            work();
        }
    };
    // Past the interpreter's end nobody holds the lock.
    if Python::try_attach(|py| py.detach(&mut once)).is_none() {
        once();
    }
}

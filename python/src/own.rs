//! [`Own`]: what belongs to the process that opened it.

use crate::error::Failure;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use volary::Kind;

/// Something of one process. A fork has a copy of it without the threads that it needs, with locks that nobody gives
/// back, and with changes that the other process is to write: it must neither use it nor end it.
pub(crate) struct Own<T: Send> {
    it: ManuallyDrop<Option<T>>,
    process: u32,
}

impl<T: Send> Own<T> {
    /// Returns what this process owns.
    pub(crate) fn new(it: T) -> Self {
        Self {
            it: ManuallyDrop::new(Some(it)),
            process: std::process::id(),
        }
    }

    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns it; `None` once it was taken.
    ///
    /// # Errors
    /// `Stale` in a fork.
    pub(crate) fn find_mut(&mut self) -> Result<Option<&mut T>, Failure> {
        self.check()?;
        Ok(self.it.as_mut())
    }

    /// Returns it.
    ///
    /// # Errors
    /// `Stale` in a fork, and once it was taken.
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        self.check()?;
        self.it.as_ref().ok_or_else(closed)
    }

    /// As [`get`](Self::get), to change it.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn get_mut(&mut self) -> Result<&mut T, Failure> {
        self.find_mut()?.ok_or_else(closed)
    }

    /// Takes it out: whoever comes later finds it closed. `None` if it was, and in a fork.
    pub(crate) fn take(&mut self) -> Option<T> {
        match self.is_ours() {
            true => self.it.take(),
            false => None,
        }
    }

    /// Returns whether it can be used.
    pub(crate) fn is_open(&self) -> bool {
        self.is_ours() && self.it.is_some()
    }

    fn check(&self) -> Result<(), Failure> {
        match self.is_ours() {
            true => Ok(()),
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

//! [`Observer`]: follows a copy.

use crate::told::failure::{Done, Failure};
use crate::told::losses::Lost;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Is told how a copy proceeds, and can end it. Several threads may call it at the same time.
pub trait Observer: Sync {
    /// Something was not copied, or not completely; the copy goes on.
    fn failed(&self, failure: &Failure) {
        let _ = failure;
    }

    /// Something cannot be read, and is zeros in the copy.
    fn damaged(&self, damage: &Damage) {
        let _ = damage;
    }

    /// The target could not keep something. Called once for each kind, at the end.
    fn lost(&self, lost: &Lost) {
        let _ = lost;
    }

    /// Reports how many more files have ended, and how many more bytes were copied.
    fn copied(&self, files: u64, bytes: u64) {
        let _ = (files, bytes);
    }

    /// Returns whether the copy must stop. Called between parts of files.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl dyn Observer + '_ {
    /// # Errors
    /// `Stopped` if the copy must stop.
    pub(crate) fn check(&self) -> Done {
        match self.is_stopped() {
            true => Err(Failure::stopped()),
            false => Ok(()),
        }
    }
}

/// Ignores all reports, and never ends the copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Stretches of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes from `first` to `last` are zeros in the copy.
    Stretch {
        /// The file.
        place: String,
        /// The first byte.
        first: u64,
        /// The last one.
        last: u64,
        /// Why.
        why: String,
    },
    /// More stretches are zeros, which are not reported one by one.
    More {
        /// The file.
        place: String,
        /// The number of these stretches.
        stretches: u32,
        /// The bytes of all unreadable stretches of the file, including those that were reported.
        bytes: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stretch {
                place,
                first,
                last,
                why,
            } => write!(
                f,
                "{place}: bytes {first} to {last} cannot be read and are zeros in the copy: {why}"
            ),
            Self::More {
                place,
                stretches,
                bytes,
            } => write!(
                f,
                "{place}: {stretches} more stretches cannot be read, {bytes} bytes in all"
            ),
        }
    }
}

/// Reports of a source, and whether anything was left out.
pub(crate) struct Report<'a> {
    pub(crate) observer: &'a dyn Observer,
    incomplete: AtomicBool,
}

impl<'a> Report<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        Self {
            observer,
            incomplete: AtomicBool::new(false),
        }
    }

    /// Reports something that is left out.
    pub(crate) fn failed(&self, failure: &Failure) {
        self.note_incomplete();
        self.observer.failed(failure);
    }

    pub(crate) fn note_incomplete(&self) {
        self.incomplete.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Report").field(&self.incomplete).finish()
    }
}

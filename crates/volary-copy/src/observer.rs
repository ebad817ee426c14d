//! [`Observer`]: who is told how a copy goes.

use crate::failure::{Done, Failure};
use crate::losses::Lost;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Is told how a copy goes, and can end it. It may be called on several threads at the same time.
pub trait Observer: Sync {
    /// Something was not copied, or not whole; the copy goes on.
    fn failed(&self, failure: &Failure) {
        let _ = failure;
    }

    /// Something cannot be read, and is zeros in the copy.
    fn damaged(&self, damage: &Damage) {
        let _ = damage;
    }

    /// The target could not keep something; once for each kind, at the end.
    fn lost(&self, lost: &Lost) {
        let _ = lost;
    }

    /// So many more files have ended, and so many more bytes were copied.
    fn copied(&self, files: u64, bytes: u64) {
        let _ = (files, bytes);
    }

    /// Returns whether nothing more is wanted: asked between parts of files.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl dyn Observer + '_ {
    /// # Errors
    /// `Stopped`, if nothing more is wanted.
    pub(crate) fn check(&self) -> Done {
        match self.is_stopped() {
            true => Err(Failure::stopped()),
            false => Ok(()),
        }
    }
}

/// Tells nobody, goes on to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What could not be read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes from `first` to `last` are zeros in the copy.
    Stretch {
        /// Which file.
        place: String,
        /// The first byte.
        first: u64,
        /// The last one.
        last: u64,
        /// Why.
        why: String,
    },
    /// So many more stretches are, each of which is not told of.
    More {
        /// Which file.
        place: String,
        /// How many stretches.
        stretches: u32,
        /// Bytes of all that is zeros, of those that were told of as well.
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

/// What a source tells, and whether anything was left out.
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

    /// Tells what is left out.
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

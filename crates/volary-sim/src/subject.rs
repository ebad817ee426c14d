//! The border: what is tortured.

use crate::disk::Disk;
use crate::trace::{Moment, Traced};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use volary_core::BlockDevice;

/// Something that keeps what it was given over a power cut. A driver with a
/// format is one by a row of [`Volume`](crate::Volume); a log or a table alone
/// can be one by this trait.
///
/// All of it is repeated many times and must do the same each time: no clock,
/// no randomness, no state. What it reads of the disk is all that it knows. Answers in words say what is wrong; a panic is
/// caught and counts as such an answer.
pub trait Subject: Sync {
    /// What it does, so that it can be done again: printed with a failure.
    type Script: fmt::Display;
    /// What a run of a script knows: what was asked for, in which order, and
    /// what each operation promised.
    type History;
    /// What is on a disk after recovery.
    type Found: PartialEq;

    /// Returns its name in commands.
    fn name(&self) -> &str;

    /// Returns a new disk, on which scripts begin.
    ///
    /// # Errors
    /// In words.
    fn make(&self) -> Result<Disk, String>;

    /// Runs a script, and tells the device when each operation begins and when
    /// it has ended.
    ///
    /// # Errors
    /// In words, if it does not run as it must without any power cut.
    fn play(&self, script: &Self::Script, dev: &Arc<Traced>) -> Result<Self::History, String>;

    /// Returns whether the device says that it keeps in memory what it was given
    /// ([`BlockDevice::is_cached`]).
    fn keeping(&self) -> bool {
        false
    }

    /// Makes good what a power cut left; what it mended, in codes, if it has
    /// any.
    ///
    /// # Errors
    /// In words, if there is more than a power cut may leave.
    fn recover(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<&'static str>, String>;

    /// Returns whether a second recovery must write nothing.
    fn settles(&self) -> bool {
        true
    }

    /// Sectors that a look only finds to hold nothing that is wanted, as a second
    /// recovery has found just before: disks that differ in these alone are looked
    /// at alike, but for one in 64, which must bear that out. None if there is no
    /// second recovery, or a look writes.
    fn aside(&self, _disk: &Disk) -> Range<u64> {
        0..0
    }

    /// Looks at all of it after recovery. It may write.
    ///
    /// # Errors
    /// In words, if it is damaged.
    fn look(&self, dev: Arc<dyn BlockDevice>) -> Result<Self::Found, String>;

    /// Whether what was found keeps the promises of a script that was so far.
    ///
    /// # Errors
    /// In words: which promise, and what was found instead.
    fn judge(
        &self,
        found: &Recovered<Self::Found>,
        history: &Self::History,
        at: Moment,
    ) -> Result<(), String>;
}

/// What recovery made of a disk.
#[derive(Clone, Debug)]
pub struct Recovered<F> {
    /// What was mended.
    pub mended: Vec<&'static str>,
    /// What is there now.
    pub found: Arc<F>,
}

impl<F> Recovered<F> {
    /// Returns what was mended, and what is there then.
    pub fn new(mended: Vec<&'static str>, found: F) -> Self {
        Self {
            mended,
            found: Arc::new(found),
        }
    }
}

//! The interface of a thing to be tortured.

use crate::disks::disk::Disk;
use crate::disks::trace::{Moment, Traced};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use volary_core::BlockDevice;

/// A thing that must keep data over a power cut. A driver with a format becomes one by a row of
/// [`Volume`](crate::Volume); a log or a table alone can implement this trait.
///
/// All methods are called many times and must be deterministic: no clock, no randomness, no state.
/// They know nothing but what they read from the disk. Errors say in words what is wrong; a panic
/// is caught and counts as such an error.
pub trait Subject: Sync {
    /// The operations of a run, in a form that can be repeated: printed with a failure.
    type Script: fmt::Display;
    /// The knowledge from a run of a script: what was requested, in which order, and what each
    /// operation promised.
    type History;
    /// The content of a disk after recovery.
    type Found: PartialEq;

    /// Returns the subject's name in commands.
    fn name(&self) -> &str;

    /// Returns a new disk, from which scripts start.
    ///
    /// # Errors
    /// A description of what is wrong.
    fn make(&self) -> Result<Disk, String>;

    /// Runs a script, and tells the device when each operation begins and when it has ended.
    ///
    /// A description, if the script does not run as it must without any power cut.
    /// In words, if it does not run as it must without any power cut.
    fn play(&self, script: &Self::Script, dev: &Arc<Traced>) -> Result<Self::History, String>;

    /// Returns whether the device claims to keep written data in memory
    /// ([`BlockDevice::is_cached`]).
    fn keeping(&self) -> bool {
        false
    }

    /// Repairs what a power cut left. Returns the codes of the repairs, if it has any.
    ///
    /// # Errors
    /// A description, if there is more damage than a power cut may cause.
    fn recover(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<&'static str>, String>;

    /// Returns whether a second recovery must write nothing.
    fn settles(&self) -> bool {
        true
    }

    /// Returns sectors that a look only finds to be unused, as a second recovery found just before.
    /// Disks that differ only in these share the result of a look, except for one in 64, which is
    /// checked. Empty if there is no second recovery, or if a look writes.
    fn aside(&self, _disk: &Disk) -> Range<u64> {
        0..0
    }

    /// Looks at all of the disk after recovery. It may write.
    ///
    /// # Errors
    /// A description, if the disk is damaged.
    fn look(&self, dev: Arc<dyn BlockDevice>) -> Result<Self::Found, String>;

    /// Checks whether the content keeps the promises of a script that had come this far.
    ///
    /// # Errors
    /// Says which promise is broken, and what was found instead.
    fn judge(
        &self,
        found: &Recovered<Self::Found>,
        history: &Self::History,
        at: Moment,
    ) -> Result<(), String>;
}

/// The result of recovering a disk.
#[derive(Clone, Debug)]
pub struct Recovered<F> {
    /// The codes of the repairs.
    pub mended: Vec<&'static str>,
    /// The content afterwards.
    pub found: Arc<F>,
}

impl<F> Recovered<F> {
    /// Combines the repairs and the content.
    pub fn new(mended: Vec<&'static str>, found: F) -> Self {
        Self {
            mended,
            found: Arc::new(found),
        }
    }
}

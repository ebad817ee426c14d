//! The summary of a run.

use crate::interface::delivery::{Way, Why};
use parking_lot::Mutex;
use std::time::Duration;

/// The results of a run, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were delivered to their end.
    pub files: u64,
    /// Bytes of these, holes included.
    pub bytes: u64,
    /// Nodes without content that were delivered.
    pub nodes: u64,
    /// Names that were reported as failed.
    pub failed: u64,
    /// Files that were delivered from the read buffer, without a copy.
    pub direct: u64,
    /// Files that were assembled from fragments.
    pub assembled: u64,
    /// Files that came from the device in chunks.
    pub chunks: u64,
    /// Files that were read through the session.
    pub ordinary: u64,
    /// Files that were read through the session because they had changed.
    pub changed: u64,
    /// Fragments that were read from the device.
    pub fragments: u64,
    /// Requests that read these fragments. Reads by the drivers are not counted.
    pub reads: u64,
    /// Bytes of these requests.
    pub read_bytes: u64,
    /// How often on-demand cleaning completed files that were begun.
    pub cleanings: u64,
    /// Sweeps over the disk.
    pub sweeps: u64,
    /// Parts in which the list was processed.
    pub parts: u64,
    /// The most memory used at any time, in bytes, of that which
    /// [`Options::memory`](crate::Options) bounds.
    pub peak: u64,
    /// How long the run took, if there was a clock.
    pub elapsed: Option<Duration>,
    /// Whether the consumer ended the run.
    pub is_stopped: bool,
}

/// A summary that several threads update.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Summary>);

impl Tally {
    /// Counts a delivered file.
    pub(crate) fn delivered(&self, way: Way, bytes: u64) {
        self.add(|sum| {
            sum.files += 1;
            sum.bytes = sum.bytes.saturating_add(bytes);
            match way {
                Way::Direct => sum.direct += 1,
                Way::Assembled => sum.assembled += 1,
                Way::Chunks => sum.chunks += 1,
                Way::Ordinary(why) => {
                    sum.ordinary += 1;
                    sum.changed += u64::from(why == Why::Changed);
                }
            }
        });
    }

    /// Counts a request to the device that reads `fragments` fragments.
    pub(crate) fn read(&self, fragments: u64, bytes: u64) {
        self.add(|sum| {
            sum.reads += 1;
            sum.fragments += fragments;
            sum.read_bytes += bytes;
        });
    }

    pub(crate) fn add(&self, change: impl FnOnce(&mut Summary)) {
        change(&mut self.0.lock());
    }

    pub(crate) fn into_summary(self) -> Summary {
        self.0.into_inner()
    }
}

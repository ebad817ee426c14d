//! The places of the master file table.

use crate::disk::runs::{self, Run};
use crate::disk::volume::Volume;
use volary_core::{Error, Kind, Result};

/// The most runs of the table.
const RUNS_MAX: usize = 1 << 20;

/// The places of the table.
#[derive(Default)]
pub(crate) struct Table {
    runs: Vec<Run>,
    /// The bytes of the table that were written.
    len: u64,
    /// The place of its first record on the device, in bytes.
    at: u64,
}

impl Table {
    /// Returns the number of records.
    pub(crate) fn records(&self, volume: &Volume) -> u64 {
        self.len / volume.record as u64
    }

    /// Returns the byte offset of a record within the `$MFT`.
    pub(crate) fn offset_of(&self, number: u64, volume: &Volume) -> Result<u64> {
        match number < self.records(volume) {
            true => Ok(number.saturating_mul(volume.record as u64)),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns the run that holds a cluster of the table, starting from that cluster.
    pub(crate) fn run(&self, cluster: u64) -> Result<Run> {
        let run = runs::find(&self.runs, cluster).ok_or_else(|| {
            let found = format!("no run of cluster {cluster}");
            Error::corrupt("$MFT", self.at, found, "runs of all of the table")
        })?;
        Ok(run.part(cluster, u64::MAX))
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the error for a record in a hole.
    pub(crate) fn hole(&self, number: u64) -> Error {
        let found = format!("a hole at record {number}");
        Error::corrupt("$MFT", self.at, found, "a table without holes")
    }

    /// Returns a table of `len` bytes. Its first record is at `at`, and its first runs are `runs`.
    ///
    /// # Errors
    /// Those of [`extend`](Self::extend).
    pub(crate) fn new(at: u64, len: u64, runs: Vec<Run>) -> Result<Self> {
        let mut table = Self {
            runs: Vec::new(),
            len,
            at,
        };
        table.extend(runs)?;
        Ok(table)
    }

    /// Adds runs of the table.
    ///
    /// # Errors
    /// `Corrupt` if there are too many runs.
    pub(crate) fn extend(&mut self, more: Vec<Run>) -> Result<()> {
        if self.runs.len().saturating_add(more.len()) > RUNS_MAX {
            let found = format!("more than {RUNS_MAX} runs");
            return Err(Error::corrupt("$MFT", self.at, found, "fewer"));
        }
        self.runs.extend(more);
        Ok(())
    }

    /// Ends the table at its first hole, or at the last cluster that the volume has on the device.
    pub(crate) fn end_at_hole(&mut self, volume: &Volume) {
        let whole = self.runs.iter().take_while(|run| run.place.is_some());
        let end = whole.last().map_or(0, Run::end).min(volume.there());
        self.len = self.len.min(end.saturating_mul(volume.cluster));
    }
}

//! Tasks that are done by volary and by a rival.

use super::finding::Row;
use crate::measure::{Cost, Summary};
use anyhow::Result;
use std::path::PathBuf;

/// How to run the comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `volary` program.
    pub volary: PathBuf,
    /// Where images and trees are put; memory-backed, so that the programs
    /// are compared and not the disk. `None`: `/dev/shm` if it is there.
    pub dir: Option<PathBuf>,
    /// Runs of each, alternating; the median counts.
    pub rounds: usize,
    /// Only tasks whose name contains this.
    pub only: Option<String>,
}

impl Options {
    /// Returns whether a task of this name is to be done.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| name.contains(only.as_str()))
    }
}

/// A task, ready to be run again and again: each run prepares what it needs
/// and gives the cost of what counts.
pub(crate) type Run<'a> = Box<dyn FnMut() -> Result<Cost> + 'a>;

/// One comparison.
pub(crate) struct Task<'a> {
    pub(crate) name: &'static str,
    pub(crate) rival: &'static str,
    pub(crate) aim: f64,
    /// As in [`Row`].
    pub(crate) memory_aim: Option<f64>,
    pub(crate) ours: Run<'a>,
    pub(crate) theirs: Run<'a>,
}

impl<'a> Task<'a> {
    /// Returns a task without an aim for memory.
    pub(crate) fn new(
        name: &'static str,
        rival: &'static str,
        aim: f64,
        ours: Run<'a>,
        theirs: Run<'a>,
    ) -> Self {
        Self {
            name,
            rival,
            aim,
            memory_aim: None,
            ours,
            theirs,
        }
    }
}

impl Task<'_> {
    /// Runs both alternately, once to warm up and `rounds` times to count. The rival begins: if
    /// it is not here, that is told at once.
    pub(crate) fn run(mut self, rounds: usize) -> Result<Row> {
        (self.theirs)()?;
        (self.ours)()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            ours.push((self.ours)()?);
            theirs.push((self.theirs)()?);
        }
        let (ours, theirs) = (Summary::of(&ours), Summary::of(&theirs));
        Ok(Row {
            task: self.name.into(),
            rival: self.rival.into(),
            ratio: theirs.median / ours.median,
            ours,
            theirs,
            aim: self.aim,
            memory_aim: self.memory_aim,
        })
    }
}

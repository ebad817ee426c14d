//! Today's alternatives, side by side with volary.

pub mod fat;
mod mounts;
mod rust_fatfs;
mod trees;

use crate::measure::{Cost, median};
use anyhow::Result;
use serde::Serialize;
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

/// One task done by volary and by one rival.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was done.
    pub task: &'static str,
    /// By which rival.
    pub rival: &'static str,
    /// volary's median, in seconds.
    pub ours: f64,
    /// The rival's median, in seconds.
    pub theirs: f64,
    /// How many times as fast volary is.
    pub ratio: f64,
    /// What it should be at least.
    pub aim: f64,
    /// volary's peak memory in bytes, where it matters.
    pub our_peak: Option<u64>,
    /// The rival's.
    pub their_peak: Option<u64>,
}

impl Row {
    /// Whether the aim is reached.
    pub fn holds(&self) -> bool {
        self.ratio >= self.aim
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
    /// Whether the peaks are shown.
    pub(crate) memory: bool,
    pub(crate) ours: Run<'a>,
    pub(crate) theirs: Run<'a>,
}

impl Task<'_> {
    /// Runs both alternately, once to warm up and `rounds` times to count.
    pub(crate) fn run(mut self, rounds: usize) -> Result<Row> {
        (self.ours)()?;
        (self.theirs)()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            ours.push((self.ours)()?);
            theirs.push((self.theirs)()?);
        }
        let none = Cost {
            seconds: 0.0,
            peak: 0,
        };
        let ours = median(&mut ours).unwrap_or(none);
        let theirs = median(&mut theirs).unwrap_or(none);
        Ok(Row {
            task: self.name,
            rival: self.rival,
            ours: ours.seconds,
            theirs: theirs.seconds,
            ratio: theirs.seconds / ours.seconds,
            aim: self.aim,
            our_peak: self.memory.then_some(ours.peak),
            their_peak: self.memory.then_some(theirs.peak),
        })
    }
}

//! Today's alternatives, side by side with volary.

pub mod bulk;
pub mod cedar;
pub mod fat;
pub mod ffs;
mod folder;
mod rust_fatfs;
pub mod servers;
mod synced;
mod trees;

use crate::measure::{Cost, Scratch, Summary};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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

/// All comparisons, by name.
pub const ALL: [&str; 5] = ["fat", "ffs", "cedar", "bulk", "servers"];

/// Runs the comparison of this name; `told` hears of each finding as soon as it is there. `scale` is for `bulk`.
///
/// # Errors
/// If there is no such comparison; if a program fails.
pub fn run(
    name: &str,
    options: &Options,
    scale: &bulk::Scale,
    told: &mut dyn FnMut(&Finding),
) -> Result<Vec<Finding>> {
    match name {
        "fat" => fat::run(options, told),
        "ffs" => ffs::run(options, told),
        "cedar" => cedar::run(options, told),
        "bulk" => bulk::run(options, scale, told),
        "servers" => servers::run(options, told),
        name => bail!("no such comparison: {name}"),
    }
}

/// Returns where a comparison puts what it makes, unless it is told.
pub(crate) fn scratch_of(name: &str) -> Scratch {
    match name {
        "bulk" => Scratch::Disk,
        _ => Scratch::Memory,
    }
}

impl Options {
    /// Whether a task of this name is to be done.
    fn wants(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| name.contains(only.as_str()))
    }
}

/// One task done by volary and by one rival.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// What was done.
    pub task: Cow<'static, str>,
    /// By which rival.
    pub rival: Cow<'static, str>,
    /// What it cost volary.
    pub ours: Summary,
    /// What it cost the rival.
    pub theirs: Summary,
    /// How many times as fast volary is, by the medians.
    pub ratio: f64,
    /// What that should be at least.
    pub aim: f64,
    /// What part of the rival's memory volary takes at most, where it counts.
    pub memory_aim: Option<f64>,
}

impl Row {
    /// What part of the rival's memory volary took; 0 if that is not known.
    pub fn memory(&self) -> f64 {
        match self.theirs.peak {
            0 => 0.0,
            peak => self.ours.peak as f64 / peak as f64,
        }
    }

    /// Whether the aims are reached.
    pub fn holds(&self) -> bool {
        self.ratio >= self.aim && self.memory_aim.is_none_or(|most| self.memory() <= most)
    }
}

/// A task that has bounds of its own, and no rival.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Bound {
    /// What was done.
    pub task: Cow<'static, str>,
    /// What it cost.
    pub ours: Summary,
    /// Most seconds that it should take.
    pub seconds_max: f64,
    /// Most bytes of memory that it should take.
    pub peak_max: u64,
}

impl Bound {
    /// Whether the bounds are kept.
    pub fn holds(&self) -> bool {
        self.ours.median <= self.seconds_max && self.ours.peak <= self.peak_max
    }
}

/// Tasks that cannot be done here.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Missing {
    /// With which rival.
    pub rival: Cow<'static, str>,
    /// Why, in a line.
    pub why: String,
}

/// Processor time of a task, by file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PerFile {
    /// What was done.
    pub task: Cow<'static, str>,
    /// How many files there were.
    pub files: u64,
    /// Processor time for each, in microseconds, that of starting and ending among it.
    pub micros: f64,
    /// Most that it should be, where that counts.
    pub micros_max: Option<f64>,
}

impl PerFile {
    /// Whether the bound is kept.
    pub fn holds(&self) -> bool {
        self.micros_max.is_none_or(|most| self.micros <= most)
    }
}

/// What was found out about one task.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Finding {
    /// Beside a rival.
    Row(Row),
    /// Beside bounds.
    Bound(Bound),
    /// By file.
    PerFile(PerFile),
    /// Nothing.
    Missing(Missing),
}

impl Finding {
    /// Returns that this rival cannot be measured here.
    pub(crate) fn missing(rival: impl Into<Cow<'static, str>>, why: String) -> Self {
        let rival = rival.into();
        Self::Missing(Missing { rival, why })
    }

    /// Whether it is as it should be.
    pub fn holds(&self) -> bool {
        match self {
            Self::Row(row) => row.holds(),
            Self::Bound(bound) => bound.holds(),
            Self::PerFile(cost) => cost.holds(),
            Self::Missing(_) => true,
        }
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
    /// One without an aim for memory.
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

//! What was found out about tasks.

use crate::measure::Summary;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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
    /// Returns what part of the rival's memory volary took; 0 if that is not known.
    pub fn memory(&self) -> f64 {
        match self.theirs.peak {
            0 => 0.0,
            peak => self.ours.peak as f64 / peak as f64,
        }
    }

    /// Returns whether the aims are reached.
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
    /// Returns whether the bounds are kept.
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
    /// Returns whether the bound is kept.
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

    /// Returns whether it is as it should be.
    pub fn holds(&self) -> bool {
        match self {
            Self::Row(row) => row.holds(),
            Self::Bound(bound) => bound.holds(),
            Self::PerFile(cost) => cost.holds(),
            Self::Missing(_) => true,
        }
    }
}

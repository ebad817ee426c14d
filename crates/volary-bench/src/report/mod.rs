//! Comparisons with peers as one page: which machine, which programs, what was measured, drawn and in tables.
//!
//! | module | what |
//! |---|---|
//! | `machine` | the machine and its system |
//! | `versions` | which version of a rival is here |
//! | `plot` | how many times as fast, drawn |
//! | `page` | the page |

mod machine;
mod page;
mod plot;
mod versions;

pub use machine::Machine;
pub use page::page;

use crate::peers::{Finding, Options, scratch_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run of one comparison: what was found, and on what.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// Which comparison: `fat`.
    pub peers: String,
    /// When it ended, in UTC.
    pub date: String,
    /// Version of volary, and the commit that it was built from, if that is known.
    pub volary: String,
    /// Where it ran.
    pub machine: Machine,
    /// Runs of each program; the median counts.
    pub rounds: usize,
    /// Versions of rivals, by the rival's name.
    pub rivals: BTreeMap<String, String>,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Run {
    /// Returns the run that ended now, at `date`, with these findings.
    pub fn new(peers: &str, date: String, options: &Options, findings: Vec<Finding>) -> Self {
        let mut rivals = BTreeMap::new();
        for finding in &findings {
            if let Finding::Row(row) = finding
                && let Some(version) = versions::of(&row.rival)
            {
                rivals.insert(row.rival.to_string(), version);
            }
        }
        Self {
            peers: peers.to_owned(),
            date,
            volary: versions::volary(&options.volary),
            machine: Machine::here(&scratch_of(peers).dir(options.dir.as_deref())),
            rounds: options.rounds.max(1),
            rivals,
            findings,
        }
    }
}

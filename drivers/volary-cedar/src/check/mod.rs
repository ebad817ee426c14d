//! Checking: that what recovery makes of the volume is right, and mending what
//! is not. After a power cut there is only the log to replay.
//!
//! A look collects everything that is wrong, and writes nothing. Mending then
//! recovers the volume as attaching does, and makes each repair a change like
//! any other: logged, whole or not at all. So a cut during a check is a cut like
//! any other.

mod look;
mod mend;
mod nodes;
mod salvage;

use crate::recover::{How, open};
use std::collections::BTreeSet;
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Fact, Finding, Kind, OptionSpec, Progress,
    Result, Severity,
};

/// What mends a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    /// Build the name table anew.
    Salvage,
    /// Recovery as every attaching does it.
    Recover,
    /// Write the root pages.
    Roots,
    /// Write one copy of a page of the name table.
    Copy(usize, u32),
    /// Make a root directory.
    Root,
    /// Save the map.
    Map,
    /// Destroy a node without a name.
    Nameless(u64),
    /// Write a leader.
    Leader(u64),
    /// Take a cell away.
    Remove(Vec<u8>),
    /// Put a cell.
    Put(Vec<u8>, Vec<u8>),
    /// Set the number of names.
    Links(u64, u32),
    /// Take the content away.
    Empty(u64),
    /// Make size and pages agree.
    Size(u64),
    /// Take the checksums of data away.
    Sums(u64),
    /// Have a node of the remote be the volume's own.
    Own(u64),
    /// Have a node be one of the remote, of which nothing is here.
    Away(u64),
    /// Put an entry into the root.
    Adopt(Vec<u8>),
}

/// Something wrong, and what mends it.
pub(crate) struct Problem {
    pub(crate) finding: Finding,
    pub(crate) fix: Fix,
}

/// What a check knows.
pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "data",
    value: "",
    help: "Read all data that has checksums (no)",
}];

/// Rounds after which a check gives up: each mends what the one before laid open.
const ROUNDS: usize = 8;

/// Checks a volume, and mends it as far as `how` allows.
///
/// # Errors
/// As [`Format::check`](volary_core::Format::check).
pub(crate) fn run(
    dev: Arc<dyn BlockDevice>,
    how: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    how.options.check_known(OPTIONS)?;
    let reads_data = how.options.flag("data", false)?;
    if how.mode != CheckMode::Look && dev.geometry().read_only {
        return Err(Kind::ReadOnly.into());
    }
    let recorder = Arc::new(Recorder::counting(dev));
    let mut out = CheckReport::default();
    let mut refused = BTreeSet::new();
    for _ in 0..ROUNDS {
        let (problems, facts) = look::look(recorder.clone(), reads_data, progress)?;
        out.facts = facts;
        let chosen = choose(problems, how.mode, report, &mut refused, &mut out);
        if chosen.is_empty() {
            break;
        }
        mend::mend(recorder.clone(), how.now, &chosen)?;
        out.mended += chosen.len() as u64;
    }
    out.written = recorder.counts().write_bytes / 512;
    Ok(out)
}

/// What tells a finding from all others: its code, words, path and place.
type Matter = (&'static str, String, Option<Vec<u8>>, Option<u64>);

/// Reports problems, and gives the repairs that are to be made.
fn choose(
    problems: Vec<Problem>,
    mode: CheckMode,
    report: &mut dyn FnMut(&Finding) -> Answer,
    refused: &mut BTreeSet<Matter>,
    out: &mut CheckReport,
) -> Vec<Fix> {
    let mut chosen = Vec::new();
    let stops = mode == CheckMode::Preen
        && problems
            .iter()
            .any(|p| p.finding.severity == Severity::Damage);
    for Problem { finding, fix } in problems {
        let key = (
            finding.code,
            finding.message.clone(),
            finding.path.clone(),
            finding.offset,
        );
        if refused.contains(&key) {
            continue;
        }
        out.found += 1;
        let answer = report(&finding);
        let wanted = match mode {
            CheckMode::Look => false,
            CheckMode::Preen => finding.severity == Severity::Crash && !stops,
            CheckMode::Mend => true,
            CheckMode::Ask => answer == Answer::Yes,
        };
        if wanted {
            chosen.push(fix);
        } else {
            refused.insert(key);
        }
    }
    chosen
}

/// How a volume is opened to be mended.
const MEND: How = How {
    read_only: false,
    ..crate::info::LOOK
};

/// A figure of the volume.
fn fact(key: &'static str, number: usize) -> Fact {
    Fact::number(key, number as u64, "")
}

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
mod problem;
mod salvage;

use problem::{Fix, Problem};
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Finding, Kind, OptionSpec, Progress, Result,
};
use volary_ondisk::Findings;

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
    let mut findings = Findings::new(how, report);
    for _ in 0..ROUNDS {
        let (problems, facts) = look::look(recorder.clone(), reads_data, progress)?;
        out.facts = facts;
        let chosen = choose(problems, &mut findings);
        if chosen.is_empty() {
            break;
        }
        mend::mend(recorder.clone(), how.now, &chosen)?;
        out.mended += chosen.len() as u64;
    }
    out.found = findings.found;
    out.written = recorder.counts().write_bytes / 512;
    Ok(out)
}

/// What tells a finding from others of its code: its words, path and place.
type Matter = (String, Option<Vec<u8>>, Option<u64>);

/// Tells of problems; returns the repairs that are to be made.
fn choose(problems: Vec<Problem>, findings: &mut Findings<'_, Matter>) -> Vec<Fix> {
    let mut chosen = Vec::new();
    for Problem { finding, fix } in problems {
        let matter = (
            finding.message.clone(),
            finding.path.clone(),
            finding.offset,
        );
        if findings.tell_once(matter, &finding) {
            chosen.push(fix);
        }
    }
    if findings.stops() {
        chosen.clear();
    }
    chosen
}

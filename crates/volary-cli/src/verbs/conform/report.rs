//! A run of the suite as text and as JSON.

use crate::exit::Done;
use crate::out::Out;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use volary_test::Report;

/// Prints what failed, a line each with the contract below, and what did not run, by its reason.
pub(super) fn tell(out: &mut Out, report: &Report) -> Done {
    for failure in &report.failed {
        writeln!(out, "{failure}")?;
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (what, list) in [("skipped", &report.skipped), ("left out", &report.left_out)] {
        for (_, why) in list {
            *reasons.entry((what, why)).or_default() += 1;
        }
    }
    for ((what, why), count) in reasons {
        writeln!(out, "{count} {what}: {why}")?;
    }
    writeln!(out, "{}", report.summary())?;
    Ok(())
}

#[derive(Serialize)]
pub(super) struct ReportJson<'a> {
    volume: &'a str,
    passed: &'a [&'static str],
    skipped: Vec<NotRunJson<'a>>,
    left_out: Vec<NotRunJson<'a>>,
    failed: Vec<FailureJson<'a>>,
}

#[derive(Serialize)]
struct NotRunJson<'a> {
    case: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct FailureJson<'a> {
    case: &'static str,
    what: &'a str,
    contract: &'a str,
    operations: &'a [String],
    alone: &'a str,
}

impl<'a> ReportJson<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let not_run = |list: &'a [(&'static str, String)]| {
            list.iter()
                .map(|(case, why)| NotRunJson { case, why })
                .collect()
        };
        let failed = report.failed.iter().map(|failure| FailureJson {
            case: failure.case,
            what: &failure.what,
            contract: failure.contract,
            operations: &failure.operations,
            alone: &failure.alone,
        });
        Self {
            volume: &report.name,
            passed: &report.passed,
            skipped: not_run(&report.skipped),
            left_out: not_run(&report.left_out),
            failed: failed.collect(),
        }
    }
}

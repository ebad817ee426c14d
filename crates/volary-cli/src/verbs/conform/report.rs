//! A run of the suite as text and as JSON.

use crate::exit::Done;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use volary_test::Report;

/// Prints what failed, a line each with the contract below, and what did not run, by its reason.
pub(super) fn tell(out: &mut impl Write, report: &Report) -> Done {
    // One cause can fail all that come after it: a file system that has crashed.
    for alike in report.failed.chunk_by(|one, next| one.what == next.what) {
        let Some((first, others)) = alike.split_first() else {
            continue;
        };
        writeln!(out, "{first}")?;
        if !others.is_empty() {
            let cases: Vec<_> = others.iter().map(|failure| failure.case).collect();
            writeln!(
                out,
                "  the same in {} more: {}",
                cases.len(),
                cases.join(", ")
            )?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use volary_test::Failure;

    fn failure(case: &'static str, what: &str) -> Failure {
        Failure {
            case,
            what: what.to_owned(),
            contract: "Removes a name.",
            operations: Vec::new(),
            alone: String::new(),
        }
    }

    #[test]
    fn what_fails_for_one_cause_is_told_once() {
        let report = Report {
            name: "mnt".to_owned(),
            failed: vec![
                failure("a", "not connected"),
                failure("b", "not connected"),
                failure("c", "not connected"),
                failure("d", "another"),
            ],
            ..Report::default()
        };
        let mut out = Vec::new();
        tell(&mut out, &report).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.matches("not connected").count(), 1, "{out}");
        assert!(out.contains("\n  the same in 2 more: b, c\n"), "{out}");
        assert!(out.contains("\nd: another\n"), "{out}");
    }
}

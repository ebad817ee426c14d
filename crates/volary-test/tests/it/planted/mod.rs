//! Mistakes, planted one at a time into a volume that is right: the suite must catch each.

mod memory;
mod places;
mod reader;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::Fs;
use volary_test::{Report, Suite};

const ELSEWHERE: &str =
    "it measures for half a second; mistakes in memory have a test of their own";

/// Prints which cases catch which mistake, and holds if each is caught.
fn all_are_caught(name: &str, reports: &BTreeMap<String, Report>) {
    let width = reports.keys().map(String::len).max().unwrap_or(0);
    let mut survivors = Vec::new();
    for (mistake, report) in reports {
        let cases: Vec<_> = report.failed.iter().map(|failure| failure.case).collect();
        println!(
            "{mistake:width$}  {:3}  {}",
            cases.len(),
            cases.first().unwrap_or(&"SURVIVED")
        );
        if cases.is_empty() {
            survivors.push(mistake);
        }
    }
    let caught = reports.len() - survivors.len();
    println!("{name}: {caught} of {} mistakes caught", reports.len());
    assert!(survivors.is_empty(), "survived: {survivors:?}");
    assert!(reports.len() >= 40, "only {} mistakes", reports.len());
}

#[test]
fn every_mistake_of_a_reader_is_caught() {
    let manifest = crate::volumes::manifest();
    let report = |mistake| {
        let make = move || Arc::new(reader::Planted::new(crate::volumes::reader(), mistake)) as Fs;
        Suite::reading(format!("{mistake:?}"), make, &manifest)
            .leave_out("reading_again_and_again_takes_no_more_memory", ELSEWHERE)
            .limit(std::time::Duration::from_secs(20))
            .stop_at_failure()
            .report()
    };
    let all = reader::Mistake::ALL.iter();
    let reports = all
        .map(|&mistake| (format!("{mistake:?}"), report(mistake)))
        .collect();
    all_are_caught("a reader", &reports);
}

#[test]
fn every_mistake_of_a_writer_is_caught() {
    let report = |mistake| {
        let make = move || writer::fresh(mistake);
        Suite::new(format!("{mistake:?}"), make)
            .leave_out(
                "using_the_same_again_and_again_takes_no_more_memory",
                ELSEWHERE,
            )
            .limit(std::time::Duration::from_secs(20))
            .stop_at_failure()
            .report()
    };
    let all = writer::Mistake::ALL.iter();
    let reports = all
        .map(|&mistake| (format!("{mistake:?}"), report(mistake)))
        .collect();
    all_are_caught("a writer", &reports);
}

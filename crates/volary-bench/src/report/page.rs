//! The page: HTML that needs nothing beside it.

use super::{Machine, Run, plot};
use crate::measure::Summary;
use crate::peers::{Bound, Finding, Missing, PerFile, Row};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = "\
body { font-family: sans-serif; margin: 2em auto; max-width: 60em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: 0.15em 0.7em; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left }
.missed { color: #b03a2e; font-weight: bold }
.small { color: #666; font-size: 0.9em }
svg { max-width: 100%; height: auto }";

/// Returns a page of these runs, in their order, and of why others failed.
pub fn page(runs: &[Run], failed: &[String]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "volary beside its peers" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "volary beside its peers" }
                p { "Medians; in brackets the shortest and the longest run. The runs of both alternate. A ratio says how many times \
                    as fast volary is. Drawn: a point for the ratio of the medians, a line for that of the extremes, a grey stroke for the aim." }
                @for run in runs { (section(run)) }
                @for why in failed { p.missed { "not measured: " (why) } }
            }
        }
    };
    markup.into_string()
}

fn section(run: &Run) -> Markup {
    let rows: Vec<&Row> = of(run, |finding| match finding {
        Finding::Row(row) => Some(row),
        _ => None,
    });
    let missed = run
        .findings
        .iter()
        .filter(|finding| !finding.holds())
        .count();
    html! {
        h2 { (run.peers) }
        (machine(&run.machine))
        p.small {
            (run.date) "; " (run.volary) "; " (run.rounds) " runs of each; "
            (run.findings.len()) " findings, " (missed) " missed their aim"
        }
        @if !run.rivals.is_empty() {
            p.small {
                @for (rival, version) in &run.rivals { (rival) ": " (version) br; }
            }
        }
        @if let Some(drawn) = plot::plot(&rows) { (PreEscaped(drawn)) }
        (compared(&rows))
        (bounds(run))
        (per_file(run))
        (missing(run))
    }
}

fn of<'a, T>(run: &'a Run, part: impl Fn(&'a Finding) -> Option<&'a T>) -> Vec<&'a T> {
    run.findings.iter().filter_map(part).collect()
}

fn machine(machine: &Machine) -> Markup {
    html! {
        p.small {
            (machine.processors) " × " (machine.processor) ", " (size(machine.memory)) " of memory; " (machine.kernel) ", "
            (machine.system) "; files on " (machine.files_on)
        }
    }
}

fn compared(rows: &[&Row]) -> Markup {
    html! {
        @if !rows.is_empty() {
            table {
                tr {
                    th { "task" } th { "rival" } th { "volary" } th { "the rival" } th { "times" } th { "aim" }
                    th { "CPU: volary" } th { "the rival" }
                }
                @for row in rows {
                    tr {
                        td { (row.task) } td { (row.rival) } td { (times(&row.ours)) } td { (times(&row.theirs)) }
                        td.missed[!row.holds()] { (format!("{:.2}", row.ratio)) }
                        td { @if row.aim > 0.0 { (format!("{:.1}", row.aim)) } }
                        td { (seconds(row.ours.cpu)) } td { (seconds(row.theirs.cpu)) }
                    }
                }
            }
        }
    }
}

fn bounds(run: &Run) -> Markup {
    let all: Vec<&Bound> = of(run, |finding| match finding {
        Finding::Bound(bound) => Some(bound),
        _ => None,
    });
    html! {
        @if !all.is_empty() {
            table {
                tr { th { "task" } th { "volary" } th { "at most" } th { "memory" } th { "at most" } }
                @for bound in all {
                    tr.missed[!bound.holds()] {
                        td { (bound.task) } td { (times(&bound.ours)) } td { (seconds(bound.seconds_max)) }
                        td { (size(bound.ours.peak)) } td { (size(bound.peak_max)) }
                    }
                }
            }
        }
    }
}

fn per_file(run: &Run) -> Markup {
    let all: Vec<&PerFile> = of(run, |finding| match finding {
        Finding::PerFile(cost) => Some(cost),
        _ => None,
    });
    html! {
        @if !all.is_empty() {
            table {
                tr { th { "task" } th { "files" } th { "CPU of each, µs" } th { "at most" } }
                @for cost in all {
                    tr {
                        td { (cost.task) } td { (cost.files) }
                        td.missed[!cost.holds()] { (format!("{:.2}", cost.micros)) }
                        td { @if let Some(most) = cost.micros_max { (format!("{most:.1}")) } }
                    }
                }
            }
        }
    }
}

fn missing(run: &Run) -> Markup {
    let all: Vec<&Missing> = of(run, |finding| match finding {
        Finding::Missing(missing) => Some(missing),
        _ => None,
    });
    html! {
        @for one in all { p.small { (one.rival) " was not measured: " (one.why) } }
    }
}

fn times(summary: &Summary) -> String {
    let [middle, least, most] = [summary.median, summary.least, summary.most].map(seconds);
    format!("{middle} ({least} – {most})")
}

/// Returns a time in words; nothing for 0, which stands for an unknown one.
fn seconds(time: f64) -> String {
    match time {
        10.0.. => format!("{time:.1} s"),
        1.0.. => format!("{time:.2} s"),
        0.0.. if time == 0.0 => String::new(),
        _ => format!("{:.1} ms", time * 1e3),
    }
}

fn size(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    match mib {
        2048.0.. => format!("{:.1} GiB", mib / 1024.0),
        _ => format!("{mib:.0} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run() -> Run {
        let summary = |median: f64| Summary {
            median,
            least: median / 2.0,
            most: median * 2.0,
            cpu: median,
            peak: 3 << 20,
        };
        let row = |ratio, aim| {
            Finding::Row(Row {
                task: "tree <in> & out".into(),
                rival: "mtools".into(),
                ours: summary(0.5),
                theirs: summary(0.5 * ratio),
                ratio,
                aim,
                memory_aim: None,
            })
        };
        Run {
            peers: "fat".into(),
            date: "2026-01-02".into(),
            volary: "volary 9".into(),
            machine: Machine::default(),
            rounds: 3,
            rivals: BTreeMap::from([("mtools".into(), "mtools 4".into())]),
            findings: vec![
                row(2.0, 1.0),
                row(0.7, 1.0),
                Finding::missing("fatx", "not here".into()),
            ],
        }
    }

    #[test]
    fn a_page_has_all_findings_and_marks_what_missed_its_aim() {
        let page = page(&[run()], &["servers: as root only".into()]);
        for part in [
            "tree &lt;in&gt; &amp; out",
            "500.0 ms (250.0 ms – 1.00 s)",
            r#"<td class="missed">0.70</td>"#,
            "<td class=\"\">2.00</td>",
            "3 findings, 1 missed their aim",
            "mtools: mtools 4",
            "fatx was not measured: not here",
            "<svg",
            "not measured: servers: as root only",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn runs_can_be_read_again() {
        let json = serde_json::to_string(&run()).unwrap();
        let again: Run = serde_json::from_str(&json).unwrap();
        assert_eq!(
            page(&[again], &["servers: as root only".into()]),
            page(&[run()], &["servers: as root only".into()])
        );
    }
}

//! What is told of a run.

use crate::exit::Done;
use crate::log::warn;
use crate::out::{self, Raw};
use crate::progress::Stretch;
use serde::Serialize;
use std::io::Write;
use std::sync::Mutex;
use volary::bulk::{File, Summary, Way};
use volary::escape;

/// Standard output, which several threads write to in whole lines, and what is told besides.
pub(super) struct Report {
    out: Mutex<Raw>,
    is_json: bool,
    prints_summary: bool,
    /// The summary is all that is printed.
    is_null: bool,
    bar: Stretch,
    failed: Mutex<u64>,
}

#[derive(Serialize)]
struct FileJson<'a> {
    event: &'static str,
    path: String,
    size: u64,
    way: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<&'a str>,
}

#[derive(Serialize)]
struct FailedJson {
    event: &'static str,
    path: String,
    error: String,
}

#[derive(Serialize)]
struct SummaryJson {
    event: &'static str,
    files: u64,
    bytes: u64,
    nodes: u64,
    failed: u64,
    direct: u64,
    assembled: u64,
    chunks: u64,
    ordinary: u64,
    changed: u64,
    fragments: u64,
    reads: u64,
    read_bytes: u64,
    merge_ratio: f64,
    cleanings: u64,
    sweeps: u64,
    parts: u64,
    peak: u64,
    seconds: f64,
}

impl Report {
    pub(super) fn new(is_json: bool, prints_summary: bool, is_null: bool) -> Self {
        Self {
            out: Mutex::new(Raw),
            is_json,
            prints_summary,
            is_null,
            bar: Stretch::new(),
            failed: Mutex::default(),
        }
    }

    /// So many more bytes will come.
    pub(super) fn found(&self, bytes: u64) {
        self.bar.longer(bytes);
    }

    /// So many of them have come.
    pub(super) fn came(&self, bytes: u64) {
        self.bar.on(bytes);
    }

    /// Prints whole lines.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn print(&self, lines: &[u8]) -> Done {
        let mut out = self
            .out
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(out.write_all(lines)?)
    }

    fn print_json(&self, value: &impl Serialize) -> Done {
        let mut line = serde_json::to_vec(value).map_err(std::io::Error::from)?;
        line.push(b'\n');
        self.print(&line)
    }

    /// Returns whether events are printed, and nothing else.
    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// A file is done, and perhaps has a sum.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn done(&self, name: &[u8], file: &File<'_>, sum: Option<&str>) -> Done {
        if !self.is_json {
            return Ok(());
        }
        self.print_json(&FileJson {
            event: "file",
            path: escape(name).to_string(),
            size: file.attr.map_or(0, |attr| attr.size),
            way: file.way.word(),
            why: match file.way {
                Way::Ordinary(why) => Some(why.word()),
                _ => None,
            },
            sum,
        })
    }

    /// A file could not be read, or what was to be done with it could not.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn failed(&self, name: &[u8], error: &str) -> Done {
        *self
            .failed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        if !self.is_json {
            warn(&format!("{}: {error}", escape(name)));
            return Ok(());
        }
        self.print_json(&FailedJson {
            event: "failed",
            path: escape(name).to_string(),
            error: escape(error.as_bytes()).to_string(),
        })
    }

    /// The run has ended. Gives how many files failed.
    ///
    /// # Errors
    /// Of standard output.
    pub(super) fn end(&self, summary: &Summary) -> Done<u64> {
        self.bar.end();
        let failed = *self
            .failed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.is_json {
            self.print_json(&json(summary, failed))?;
        } else if self.is_null {
            self.print(words(summary, failed).as_bytes())?;
        } else if self.prints_summary {
            eprint!("{}", words(summary, failed));
        }
        Ok(failed)
    }
}

fn merge_ratio(summary: &Summary) -> f64 {
    if summary.reads == 0 {
        return 1.0;
    }
    summary.fragments as f64 / summary.reads as f64
}

fn json(summary: &Summary, failed: u64) -> SummaryJson {
    SummaryJson {
        event: "summary",
        files: summary.files,
        bytes: summary.bytes,
        nodes: summary.nodes,
        failed,
        direct: summary.direct,
        assembled: summary.assembled,
        chunks: summary.chunks,
        ordinary: summary.ordinary,
        changed: summary.changed,
        fragments: summary.fragments,
        reads: summary.reads,
        read_bytes: summary.read_bytes,
        merge_ratio: merge_ratio(summary),
        cleanings: summary.cleanings,
        sweeps: summary.sweeps,
        parts: summary.parts,
        peak: summary.peak,
        seconds: summary.elapsed.map_or(0.0, |e| e.as_secs_f64()),
    }
}

fn words(summary: &Summary, failed: u64) -> String {
    let seconds = summary.elapsed.map_or(0.0, |e| e.as_secs_f64());
    let rate = if seconds > 0.0 {
        summary.bytes as f64 / seconds
    } else {
        0.0
    };
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let rows = [
        row("files", format!("{} ({} failed)", summary.files, failed)),
        row(
            "bytes",
            format!("{} ({})", summary.bytes, out::human(summary.bytes)),
        ),
        row(
            "from the device",
            format!(
                "{} not copied, {} put together, {} in chunks",
                summary.direct, summary.assembled, summary.chunks
            ),
        ),
        row("the ordinary way", summary.ordinary.to_string()),
        row(
            "device reads",
            format!(
                "{} of {} bytes, {:.1} fragments each",
                summary.reads,
                summary.read_bytes,
                merge_ratio(summary)
            ),
        ),
        row(
            "cleanings",
            format!("{} in {} sweeps", summary.cleanings, summary.sweeps),
        ),
        row(
            "peak buffer",
            format!("{} ({})", summary.peak, out::human(summary.peak)),
        ),
        row(
            "seconds",
            format!("{seconds:.3} ({}/s)", out::human(rate as u64)),
        ),
    ];
    out::columns(&rows, &[false, false])
}

//! Section 5.4: what group commit saves, and how long records of the log are.

use super::counted::Request;
use super::rival::{APART, Fsd, Rival, SMALL};
use crate::paper::table::{Cell, Table};
use anyhow::Result;
use volary_cedar::Layout;
use volary_sim::Preset;

/// Small files that are made, in directories of a hundred: a bulk update of the name table.
const MADE: usize = 400;
const BEFORE: usize = 1000;
/// Pages of a record besides those that it logs.
const AROUND: u64 = 5;

/// What a run asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    /// For names, properties and the log.
    metadata: f64,
    all: f64,
    /// Sectors of a record of the log: least, mean, most.
    record: [f64; 3],
}

fn run(commit: &str) -> Result<Run> {
    let mut fsd = Fsd::new(&Preset::T300, commit)?;
    let name = |kind: &str, i: usize| format!("{kind}{}>Small{i:04}.bcd", i / 100);
    for i in 0..BEFORE {
        fsd.create(&name("before", i), SMALL)?;
        fsd.wait(APART)?;
    }
    fsd.on.sync()?;
    let from = fsd.on.requests(0).len();
    for i in 0..MADE {
        fsd.create(&name("bulk", i), SMALL)?;
        fsd.wait(APART)?;
    }
    fsd.on.sync()?;
    let layout = Layout::read(fsd.on.device())?;
    Ok(tell(&fsd.on.requests(from), &layout))
}

/// Sorts requests by where they go. Pages have a sector.
fn tell(requests: &[Request], layout: &Layout) -> Run {
    let (table_a, log) = (u64::from(layout.table_a), u64::from(layout.log));
    let end = u64::from(layout.table_b + layout.table_len);
    let is_metadata = |request: &&Request| (table_a..end).contains(&request.first);
    let in_log = log..log + u64::from(layout.log_len());
    let records = requests
        .iter()
        .filter(|r| r.is_write && in_log.contains(&r.first));
    let lens: Vec<u64> = records.map(|record| record.sectors).collect();
    let sum: u64 = lens.iter().sum();
    let bound = |of: Option<&u64>| of.copied().unwrap_or(0) as f64;
    Run {
        metadata: requests.iter().filter(is_metadata).count() as f64,
        all: requests.len() as f64,
        record: [
            bound(lens.iter().min()),
            sum as f64 / lens.len().max(1) as f64,
            bound(lens.iter().max()),
        ],
    }
}

const NOTES: &str = "\
Four hundred small creates, one each 70 ms, on volumes that commit each half second, or with each change.
! The paper does not say what its benchmark did. From its two factors there were 2.1 requests for metadata to each
one for data even with group commit (2.98 M + D = 2.34 (M + D)); of creates, which write a data page each, there are
0.4. So of all requests group commit saves as much here, but of those for metadata more.
! A record of the paper's logs up to 39 pages; here the longest batch of half a second has fewer, as creates come one
by one.";

/// Makes the table.
///
/// # Errors
/// Of the volumes.
pub(super) fn table() -> Result<Table> {
    let (grouped, alone) = (run("")?, run(",commit=0")?);
    let [_, mean, most] = grouped.record;
    let [least, ..] = alone.record;
    let mut table = Table::new("Section 5.4: group commit", "", &["FSD"]);
    let mut row = |name: &str, paper: f64, ours: f64| {
        table.row(name, vec![Cell::claimed(paper, ours)]);
    };
    row(
        "metadata I/Os, times fewer with group commit",
        2.98,
        alone.metadata / grouped.metadata,
    );
    row(
        "all I/Os, times fewer with group commit",
        2.34,
        alone.all / grouped.all,
    );
    row("sectors of a record of one page", 7.0, least);
    row("sectors of a typical record under load", 33.0, mean);
    row(
        "pages that such a record logs",
        14.0,
        (mean - AROUND as f64) / 2.0,
    );
    row("sectors of the longest record", 83.0, most);
    table.note(NOTES);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of bench/README.md.
    #[test]
    fn group_commit_saves_as_many_requests_as_in_the_paper() {
        let rows = table().unwrap().rows;
        let printed = |row: &crate::paper::table::Row| format!("{:.2}", row.cells[0].ours.unwrap());
        let ours: Vec<String> = rows.iter().map(printed).collect();
        assert_eq!(ours, ["8.60", "2.69", "7.00", "27.56", "11.28", "37.00"]);
        let far = rows.iter().map(|row| row.cells[0].is_far());
        let far: Vec<bool> = far.collect();
        assert_eq!(far, [true, false, false, false, false, true]);
    }
}

//! The benchmarks of Almeida, "FIFS: A Framework for Implementing User-Mode
//! File Systems in Windows NT" (USENIX Windows NT Symposium 1999), section 5: a
//! directory of the host used directly, and through volary's servers, as the
//! paper uses NTFS directly and through FSWIN32; what an NFS server has through
//! volary's client and through the kernel's, as the paper's FSNFS and kNFS.
//!
//! | module | what |
//! |---|---|
//! | `media` | the ways to the files, on the host and in a guest, and their times |
//! | `build` | the application benchmark |
//! | `claims` | what the paper's text says of its graphs, beside ours |
//!
//! The paper's figures are graphs, of which the text at hand has no bars; where
//! it gives numbers, they stand beside ours. Its `zip` is `tar` here.

mod build;
mod claims;
mod media;

use super::chart::logarithmic;
use super::table::{Cell, Table};
use crate::served::{Clients, Place};
use anyhow::{Result, bail};
use media::{Bench, LARGE, Times, Work};
use std::path::Path;
use std::rc::Rc;
use volary::Progress;

/// The figures' names; 5-4 and 5-5 are of the same runs, and come together.
pub const TABLES: [&str; 5] = ["5-1", "5-2", "5-3", "5-4", "5-5"];

/// A figure: its name, title, benchmark, phases, and the paper's seconds of reading, directly and through FSWIN32.
struct Figure {
    name: &'static str,
    title: &'static str,
    work: Work,
    phases: &'static [&'static str],
    reads: Option<[f64; 2]>,
}

const FIGURES: [Figure; 5] = [
    Figure {
        name: "5-1",
        title: "a file of 8 MB, 256 KB at a time",
        work: Work::Client(&["large", "256"]),
        phases: &LARGE,
        reads: Some([0.15, 0.87]),
    },
    Figure {
        name: "5-2",
        title: "a file of 8 MB, 8 KB at a time",
        work: Work::Client(&["large", "8"]),
        phases: &LARGE,
        reads: Some([0.07, 1.14]),
    },
    Figure {
        name: "5-3",
        title: "1000 files of 1 KB in 10 directories",
        work: Work::Client(&["small"]),
        phases: &["create", "read", "write", "write-sync", "delete"],
        reads: None,
    },
    Figure {
        name: "5-4",
        title: "a tree of 209 files is copied, unpacked and compared",
        work: Work::Build,
        phases: &["copy", "unpack", "attributes", "compare"],
        reads: None,
    },
    Figure {
        name: "5-5",
        title: "a tree of 209 files is compiled, packed and removed",
        work: Work::Build,
        phases: &["compile", "pack", "remove", build::TOTAL],
        reads: None,
    },
];

/// What was found for a figure.
pub struct Found {
    figure: &'static Figure,
    times: Rc<Times>,
}

/// Measures one of [`TABLES`], or all. `progress` is told of each way to the files, and its error ends all.
///
/// # Errors
/// If it is not run by root, if a program fails, or what `progress` says.
pub fn find(volary: &Path, which: Option<&str>, progress: &dyn Progress) -> Result<Vec<Found>> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "the paper fifs is measured on mounts, in a network of its own: run it as root, with sudo"
        );
    }
    let place = Place::new(None)?;
    let clients = Clients::compile(&place)?;
    let bench = Bench::new(&place, &clients, volary, progress)?;
    let wanted = FIGURES.iter().find(|figure| Some(figure.name) == which);
    let mut all: Vec<Found> = Vec::new();
    for figure in &FIGURES {
        if wanted.is_some_and(|wanted| wanted.work != figure.work) {
            continue;
        }
        // Both parts of the application benchmark are of the same runs.
        let times = match all.iter().find(|found| found.figure.work == figure.work) {
            Some(found) => Rc::clone(&found.times),
            None => Rc::new(bench.times(figure.work)?),
        };
        all.push(Found { figure, times });
    }
    Ok(all)
}

/// Returns what was found as tables: for each figure those of the host and of the guest, and what the paper says of them.
pub fn tables(found: &[Found]) -> Vec<Table> {
    found.iter().flat_map(Found::tables).collect()
}

/// Returns the figures' names and the figures as SVG.
pub fn pictures(found: &[Found]) -> Vec<(String, String)> {
    let drawn = |(part, table): (&str, &Table), figure: &Figure| {
        let name = format!("fifs-figure-{}{part}", figure.name);
        (name, logarithmic::bars(table).to_string())
    };
    let mut all = Vec::new();
    for one in found {
        let tables = one.measured();
        let parts = ["", "-guest"].into_iter().zip(&tables);
        all.extend(parts.map(|part| drawn(part, one.figure)));
    }
    all
}

impl Found {
    fn tables(&self) -> Vec<Table> {
        let mut all = self.measured();
        all.extend(claims::tables(self.figure.name, &self.times));
        all
    }

    /// Returns the table of the host, and that of the guest if there was one.
    fn measured(&self) -> Vec<Table> {
        let Figure { name, title, .. } = self.figure;
        let mut host = self.table(
            format!("Figure {name}: {title}"),
            self.times.host.iter().map(|one| (one.name, &one.phases)),
        );
        if let Some([direct, fswin32]) = self.figure.reads {
            for (row, paper) in [(media::DIRECTORY, direct), (media::FSWIN32, fswin32)] {
                set_paper(&mut host, row, "sequential-read", paper * 1e3);
            }
        }
        host.note(media::HOST_NOTE);
        for words in &self.times.missing {
            host.note(words);
        }
        let mut all = vec![host];
        if !self.times.guest.is_empty() {
            let mut guest = self.table(
                format!("Figure {name}, by Linux's own clients in an emulated guest: {title}"),
                self.times.guest.iter().map(|one| (one.name, &one.phases)),
            );
            guest.note(media::GUEST_NOTE);
            if self.figure.work == Work::Build {
                guest.note(build::FEWER_NOTE);
            }
            all.push(guest);
        }
        all
    }

    fn table<'a>(
        &self,
        title: String,
        rows: impl Iterator<Item = (&'static str, &'a crate::served::clients::Phases)>,
    ) -> Table {
        let mut table = Table::new(title, "ms", self.figure.phases);
        for (name, phases) in rows {
            let cell = |phase: &&str| match phases.median(phase) {
                Some(seconds) => Cell::ours(seconds * 1e3),
                // The client has no such call.
                None => Cell::default(),
            };
            table.row(name, self.figure.phases.iter().map(cell).collect());
        }
        table
    }
}

/// Puts the paper's figure beside ours.
fn set_paper(table: &mut Table, row: &str, column: &str, paper: f64) {
    let column = table.columns.iter().position(|name| name == column);
    let row = table.rows.iter_mut().find(|one| one.name == row);
    if let (Some(row), Some(column)) = (row, column)
        && let Some(cell) = row.cells.get_mut(column)
    {
        cell.paper = Some(paper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Timed;

    /// Makes times for a figure: each medium takes one second more than the one before, in each phase.
    fn found(figure: &'static Figure, guest: bool) -> Found {
        let timed = |names: Vec<&'static str>| -> Vec<Timed> {
            let mut seconds = 0.0;
            let one = |name| {
                seconds += 1.0;
                let costs = figure.phases.iter().map(|p| ((*p).to_owned(), seconds));
                Timed::new(name, [costs.collect()])
            };
            names.into_iter().map(one).collect()
        };
        let times = Times {
            host: timed(media::host_names(figure.work)),
            guest: if guest {
                timed(media::guest_names())
            } else {
                Vec::new()
            },
            missing: vec!["no NFS client".to_owned()],
        };
        Found {
            figure,
            times: Rc::new(times),
        }
    }

    #[test]
    fn a_figure_has_the_papers_seconds_where_its_text_has_them() {
        let found = found(&FIGURES[0], true);
        let tables = tables(std::slice::from_ref(&found));
        assert_eq!(tables.len(), 3);
        let reads = |name: &str| {
            let row = tables[0].rows.iter().find(|row| row.name == name).unwrap();
            row.cells[1]
        };
        assert_eq!(reads(media::DIRECTORY), Cell::new(150.0, 1000.0));
        assert_eq!(reads(media::FSWIN32).paper, Some(870.0));
        let others = tables[0].rows.iter().flat_map(|row| &row.cells);
        assert_eq!(others.filter(|cell| cell.paper.is_some()).count(), 2);
        assert!(tables[0].notes.contains(&"no NFS client".to_owned()));
        assert!(tables[1].title.contains("guest"));
    }

    #[test]
    fn without_a_guest_its_tables_and_pictures_are_left_out() {
        let all: Vec<Found> = FIGURES.iter().map(|one| found(one, false)).collect();
        assert!(
            tables(&all)
                .iter()
                .all(|table| !table.title.contains("guest"))
        );
        let names: Vec<String> = pictures(&all).into_iter().map(|(name, _)| name).collect();
        let wanted = TABLES.map(|name| format!("fifs-figure-{name}"));
        assert_eq!(names, wanted);
        assert_eq!(pictures(&[found(&FIGURES[4], true)]).len(), 2);
    }
}

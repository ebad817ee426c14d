//! Looking: the copies of everything, the name table as a tree, and, with
//! [`nodes`](super::nodes), what is in it.

use super::nodes::Gathered;
use super::problem::{Fix, Problem, finding};
use crate::change::files::Files;
use crate::disk::volume::{Checked, Layout};
use crate::log::read_anchors;
use crate::look::info::LOOK;
use crate::look::roots::read_roots;
use crate::name_table::page::Image;
use crate::name_table::table::{Pair, judge, read_pages};
use crate::recover::{Recovered, open};
use crate::space::vam::Vam;
use crate::tree::btree::Tree;
use crate::tree::walk::{Lost, Visitor};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Fact, Finding, Kind, Progress, Result, Severity};

/// Finds everything that is wrong.
///
/// # Errors
/// As [`open`].
pub(super) fn look(
    dev: Arc<dyn BlockDevice>,
    reads_data: bool,
    progress: &dyn Progress,
) -> Result<(Vec<Problem>, Vec<Fact>)> {
    let (mut files, recovered) = open(dev, &LOOK)?;
    let mut problems = Vec::new();
    roots(&files, &mut problems)?;
    log(&files, &recovered, &mut problems);
    let mut tree = Pages {
        nodes: Gathered::new(reads_data),
        pages: Vec::new(),
        problems: Vec::new(),
        progress,
        total: u64::from(
            files.core.layout.table_len
                - files
                    .core
                    .map
                    .vam()
                    .table_free()
                    .min(files.core.layout.table_len),
        ),
    };
    Tree::of(&mut files.core).walk(&mut tree)?;
    let (mut nodes, pages) = (tree.nodes, tree.pages);
    let broken = !tree.problems.is_empty();
    problems.append(&mut tree.problems);
    copies(&files, &pages, &recovered, &mut problems);
    let mut vam = Vam::empty(&files.core.layout);
    pages.iter().for_each(|index| vam.mark_table(*index, true));
    nodes.judge(&mut files, &mut vam, progress)?;
    problems.append(&mut nodes.problems);
    map_copies(&files, &recovered, &mut problems);
    map(
        &files,
        &vam,
        &recovered,
        broken || !problems.is_empty(),
        &mut problems,
    );
    let facts = vec![
        fact("files", nodes.files),
        fact("directories", nodes.dirs),
        fact("pages of the name table", pages.len()),
        Fact::number(
            "free",
            u64::from(vam.free()) * u64::from(files.core.layout.page),
            "bytes",
        ),
    ];
    Ok((problems, facts))
}

fn roots(files: &Files, problems: &mut Vec<Problem>) -> Result<()> {
    let found = read_roots(&**files.core.cache.device())?;
    for page in files.core.layout.roots() {
        let good = |copy: &(u32, Option<Checked<Layout>>)| {
            copy.0 == page && matches!(&copy.1, Some(Ok(l)) if *l == files.core.layout)
        };
        if found.iter().any(good) {
            continue;
        }
        let message = format!("the root in page {page} is bad or old");
        problems.push(Problem {
            finding: Finding {
                offset: Some(files.core.layout.offset(page)),
                ..finding(
                    "root-copy",
                    Severity::Damage,
                    message,
                    "write it from a good one",
                )
            },
            fix: Fix::Roots,
        });
    }
    Ok(())
}

fn log(files: &Files, recovered: &Recovered, problems: &mut Vec<Problem>) {
    let mut add = |code, severity, message, repair| {
        problems.push(Problem {
            finding: finding(code, severity, message, repair),
            fix: Fix::Recover,
        });
    };
    if let Some(words) = &recovered.lost {
        add(
            "log-lost",
            Severity::Damage,
            words.clone(),
            "go on with what was before it",
        );
    }
    if recovered.records > 0 {
        let message = format!("{} log records are to be replayed", recovered.records);
        add("log", Severity::Crash, message, "replay them");
    }
    let anchors = read_anchors(&**files.core.cache.device(), &files.core.layout);
    for (page, _) in files
        .core
        .layout
        .anchors()
        .iter()
        .zip(&anchors)
        .filter(|(_, a)| a.is_none())
    {
        // One of the two may have been in the middle of being written.
        let both = anchors.iter().all(Option::is_none);
        let severity = if both {
            Severity::Damage
        } else {
            Severity::Crash
        };
        add(
            "anchor-copy",
            severity,
            format!("the anchor in page {page} is bad"),
            "write it anew",
        );
    }
}

/// Holds the two copies of each page to each other, but for pages that are to
/// be written from the log anyway.
fn copies(files: &Files, pages: &[u32], recovered: &Recovered, problems: &mut Vec<Problem>) {
    let dev = files.core.cache.device();
    let layout = &files.core.layout;
    let due = match recovered.records {
        0 => Vec::new(),
        _ => files.core.table.due(0),
    };
    for index in pages {
        if due.binary_search_by_key(index, |d| d.0).is_ok() {
            continue;
        }
        let a = read_pages(&**dev, layout, layout.table_a + index, 1);
        let b = read_pages(&**dev, layout, layout.table_b + index, 1);
        if let Pair::Half(_, copy) = judge(&a, &b, layout, *index) {
            let start = if copy == 0 {
                layout.table_a
            } else {
                layout.table_b
            };
            let message = format!("one copy of page {index} of the name table is bad or old");
            problems.push(Problem {
                finding: Finding {
                    offset: Some(layout.offset(start + index)),
                    ..finding(
                        "table-copy",
                        Severity::Damage,
                        message,
                        "write it from the other",
                    )
                },
                fix: Fix::Copy(copy, *index),
            });
        }
    }
}

fn map(files: &Files, vam: &Vam, recovered: &Recovered, other: bool, problems: &mut Vec<Problem>) {
    if !recovered.map_loaded || other || vam == files.core.map.vam() {
        return;
    }
    let message = format!(
        "the saved map has {} pages free, by the name table there are {}",
        files.core.map.vam().free(),
        vam.free()
    );
    problems.push(Problem {
        finding: finding(
            "map",
            Severity::Damage,
            message,
            "save it as the name table has it",
        ),
        fix: Fix::Map,
    });
}

/// Holds the copies of a logged map to each other, unless pages of it are to be
/// written from the log anyway.
fn map_copies(files: &Files, recovered: &Recovered, problems: &mut Vec<Problem>) {
    let bad = files.core.map.pages_due();
    if !files.core.layout.logs_map || recovered.records > 0 || bad == 0 {
        return;
    }
    let message = match recovered.map_loaded {
        true => format!("one copy of {bad} pages of the saved map is bad or old"),
        false => "the saved map is bad, or of another time than the log".into(),
    };
    let repair = "save it as the name table has it";
    problems.push(Problem {
        finding: finding("map-copy", Severity::Crash, message, repair),
        fix: Fix::Map,
    });
}

/// Collects pages and cells.
struct Pages<'a> {
    nodes: Gathered,
    pages: Vec<u32>,
    problems: Vec<Problem>,
    progress: &'a dyn Progress,
    total: u64,
}

impl Visitor for Pages<'_> {
    fn page(&mut self, index: u32, _: &Image) -> Result<()> {
        self.pages.push(index);
        self.progress
            .progress("name table", self.pages.len() as u64, self.total)
    }

    fn cell(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.nodes.add(key, value);
        Ok(())
    }

    fn bad(&mut self, lost: Lost, error: Error) -> Result<()> {
        if error == Kind::Io {
            return Err(error);
        }
        let message = format!("page {} of the name table is lost: {error}", lost.index);
        let repair = "build the table anew from what is left";
        self.problems.push(Problem {
            finding: finding("table-page", Severity::Damage, message, repair),
            fix: Fix::Salvage,
        });
        Ok(())
    }
}

/// Returns a figure of the volume.
fn fact(key: &'static str, number: usize) -> Fact {
    Fact::number(key, number as u64, "")
}

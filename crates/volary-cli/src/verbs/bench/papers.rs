//! `volary bench paper`: tables and figures of a paper, beside the paper's own.

use super::failed::failed;
use crate::exit::{Done, Exit, Fail};
use crate::progress::Bar;
use crate::{interrupt, modelled, out};
use std::path::{Path, PathBuf};
use volary_bench::paper::{self, table::Table};

/// Tables and figures of a paper, beside the paper's own
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary bench paper dosfs
  volary bench paper dosfs --table 4 --json
  volary bench paper ffs
  volary bench paper ffs --table 2a
  volary bench paper ffs --table 1 /usr/share
  volary bench paper cedar --table 5.4
  volary bench paper daft --table 4 --json
  volary bench paper daft --table fig2 --svg figures
  volary bench paper dosfs --table 5 --disk hdd
  sudo volary bench paper fifs --table 5-1 --svg figures")]
pub(crate) struct Paper {
    /// The paper: dosfs is Forin and Malan's of 1993, ffs McKusick and others' of 1984,
    /// cedar Hagmann's of 1987, daft Guo and Chiueh's, fifs Almeida's of 1999 (as root)
    #[arg(value_parser = ["dosfs", "ffs", "cedar", "daft", "fifs"])]
    paper: String,
    /// Only this table; otherwise all. dosfs: 2 space, 3 Ousterhout's tests, 4 large files, 5 whole
    /// workloads, 6 and 7 on other systems, fixed, fig2, fig3, fig4; ffs: 1 waste, 2a reading, 2b writing;
    /// cedar: 2 to 5, and 5.4 group commit; daft: 2 to 4, fig2, and memory, which is section II.C;
    /// fifs: 5-1 to 5-5
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// ffs: the directory with whose files the volumes of table 1 are filled (default: files
    /// of such lengths as the paper's)
    #[arg(value_name = "DIR")]
    tree: Option<PathBuf>,
    /// dosfs, ffs, cedar, daft: this disk in place of the paper's own: see `volary sim --help`
    /// for the names. Only tables that have times
    #[arg(long, value_name = "DISK")]
    disk: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// dosfs, daft, fifs: draws the paper's figures into this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// Returns the names of a paper's tables that have times on a modelled disk.
fn timed_of(paper: &str) -> &'static [&'static str] {
    match paper {
        "dosfs" => &paper::dosfs::TIMED,
        "ffs" => &paper::ffs::TIMED,
        "cedar" => &paper::cedar::TIMED,
        "daft" => &paper::daft::TIMED,
        _ => &[],
    }
}

/// Returns the names of a paper's tables.
fn tables_of(paper: &str) -> &'static [&'static str] {
    match paper {
        "dosfs" => &paper::dosfs::TABLES,
        "ffs" => &paper::ffs::TABLES,
        "cedar" => &paper::cedar::TABLES,
        "daft" => &paper::daft::TABLES,
        _ => &paper::fifs::TABLES,
    }
}

impl Paper {
    /// Prints the tables, and draws the figures that are wanted.
    pub(super) fn run(&self) -> Done<Exit> {
        self.check()?;
        let table = self.table.as_deref();
        let disk = self
            .disk
            .as_deref()
            .map(modelled::named)
            .transpose()?
            .copied();
        let tables = match self.paper.as_str() {
            "dosfs" => paper::dosfs::tables(table, disk),
            "ffs" => paper::ffs::tables(table, self.tree.as_deref(), disk),
            "cedar" => paper::cedar::tables(table, disk),
            "daft" => paper::daft::tables(table, disk),
            _ => return self.fifs(table),
        };
        self.print(&tables.map_err(failed)?)
    }

    /// Measures the paper fifs, and prints and draws what was found.
    fn fifs(&self, table: Option<&str>) -> Done<Exit> {
        let volary = std::env::current_exe().map_err(|e| Fail::host("bench", e))?;
        interrupt::catch();
        let found = paper::fifs::find(&volary, table, &Bar::new("measured"));
        // Ctrl-C ends the programs under way, too: report the interrupt, not their failure.
        interrupt::check()?;
        let found = found.map_err(failed)?;
        if let Some(dir) = &self.svg {
            put(paper::fifs::pictures(&found), dir)?;
        }
        self.print(&paper::fifs::tables(&found))
    }

    /// Refuses options that are not for this paper.
    fn check(&self) -> Done {
        let paper = self.paper.as_str();
        let refused = |words: String| Err(Fail::usage(format!("bench: {words}")));
        if self.svg.is_some() && !matches!(paper, "dosfs" | "daft" | "fifs") {
            return refused("--svg is for the papers dosfs, daft and fifs".into());
        }
        if self.tree.is_some() && paper != "ffs" {
            return refused("DIR is for the paper ffs".into());
        }
        if self.disk.is_some() && paper == "fifs" {
            return refused("--disk is for the papers dosfs, ffs, cedar and daft".into());
        }
        let Some(table) = self.table.as_deref() else {
            return match self.disk.is_some() && self.tree.is_some() {
                true => refused("DIR is for table 1, which has no times for --disk".into()),
                false => Ok(()),
            };
        };
        let all = tables_of(paper);
        if !all.contains(&table) {
            let words = format!(
                "--table {table} is none of the paper {paper}: {}",
                all.join(", ")
            );
            return refused(words);
        }
        if self.tree.is_some() && table != "1" {
            return refused("DIR is for table 1".into());
        }
        let timed = timed_of(paper);
        if self.disk.is_some() && !timed.contains(&table) {
            let words = format!(
                "--disk is for tables of the paper {paper} that have times: {}",
                timed.join(", ")
            );
            return refused(words);
        }
        Ok(())
    }

    /// Prints tables, and draws those that are figures.
    fn print(&self, tables: &[Table]) -> Done<Exit> {
        if let Some(dir) = &self.svg {
            put(tables.iter().filter_map(paper::chart::drawn), dir)?;
        }
        let mut out = out::out();
        match self.json {
            true => out::json(&mut out, &tables)?,
            false => paper::table::print_all(tables, &mut out).map_err(failed)?,
        }
        out::end(out)?;
        Ok(Exit::Done)
    }
}

/// Writes pictures into a directory, each into a file of its name.
fn put(pictures: impl IntoIterator<Item = (impl AsRef<str>, String)>, dir: &Path) -> Done {
    std::fs::create_dir_all(dir).map_err(|e| Fail::host(dir.display(), e))?;
    for (name, drawn) in pictures {
        let path = dir.join(format!("{}.svg", name.as_ref()));
        std::fs::write(&path, drawn).map_err(|e| Fail::host(path.display(), e))?;
    }
    Ok(())
}

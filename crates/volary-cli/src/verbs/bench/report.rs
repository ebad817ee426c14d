//! `volary bench report`: what comparisons found, as one page.

use super::peers::{HEAD, How, print};
use crate::exit::{Done, Exit, Fail};
use crate::out;
use std::io::Write;
use std::path::{Path, PathBuf};
use volary_bench::peers;
use volary_bench::report::{Run, page};

/// Runs comparisons, or takes what earlier runs have found, and writes a page of HTML that needs nothing beside it.
///
/// It has, of each comparison, the machine, the versions of all programs, medians and spreads, drawn and in tables. A
/// rival that is not installed is named and left out, and so is a comparison that needs root.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary bench report report.html
  volary bench report --peers fat --rounds 3 report.html
  volary bench peers bulk --json > bulk.json
  volary bench report --from bulk.json report.html")]
pub(crate) struct Report {
    /// Runs this comparison; may be given several times (default: all, unless there is --from)
    #[arg(long, value_name = "NAME", value_parser = peers::ALL)]
    peers: Vec<String>,
    /// Takes what an earlier `volary bench peers NAME --json` printed; may be given several times
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
    /// The page
    #[arg(value_name = "HTML")]
    page: PathBuf,
}

impl Report {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut runs = Vec::new();
        for file in &self.from {
            runs.push(earlier(file)?);
        }
        let mut failed = Vec::new();
        for name in self.names() {
            out::Raw.write_all(format!("{name}\n{HEAD}").as_bytes())?;
            match self.how.run(name, &mut print) {
                Ok(run) => runs.push(run),
                Err(fail) => {
                    crate::log::say(&format!("volary: {name}: {}\n", fail.line));
                    failed.push(format!("{name}: {}", fail.line));
                }
            }
        }
        let written = std::fs::write(&self.page, page(&runs, &failed));
        written.map_err(|e| Fail::host(self.page.display(), e))?;
        Ok(match failed.is_empty() {
            true => Exit::Done,
            false => Exit::Failed,
        })
    }

    fn names(&self) -> Vec<&str> {
        match (self.peers.is_empty(), self.from.is_empty()) {
            (true, true) => peers::ALL.to_vec(),
            _ => self.peers.iter().map(String::as_str).collect(),
        }
    }
}

/// Reads what an earlier run printed.
fn earlier(file: &Path) -> Done<Run> {
    let bytes = std::fs::read(file).map_err(|e| Fail::host(file.display(), e))?;
    serde_json::from_slice(&bytes).map_err(|e| {
        let words = format!(
            "{}: not what `volary bench peers NAME --json` prints: {e}",
            file.display()
        );
        Fail::new(Exit::Failed, words)
    })
}

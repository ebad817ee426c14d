//! `volary bench`: this program beside others, and the papers' measurements.

mod failed;
mod papers;
mod peers;
mod report;

use crate::exit::{Done, Exit};

/// Measures this program beside others, on this machine.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary bench paper dosfs
  volary bench paper cedar --table 3
  volary bench paper daft --svg figures
  volary bench paper ffs --table 2a
  volary bench peers fat
  volary bench peers fat --only 'tree in' --json
  sudo volary bench peers servers --only nfs
  volary bench report --peers fat --peers ffs report.html")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Paper(papers::Paper),
    Peers(peers::Peers),
    Report(report::Report),
}

impl Bench {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        match &self.what {
            What::Paper(paper) => paper.run(),
            What::Peers(peers) => peers.run(),
            What::Report(report) => report.run(),
        }
    }
}

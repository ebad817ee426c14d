//! `volary bench peers`: beside other programs of today.

use crate::exit::{Done, Exit, Fail};
use crate::{clock, out};
use std::io::Write;
use std::path::PathBuf;
use volary_bench::measure::Summary;
use volary_bench::peers::{self, Bound, Finding, Missing, PerFile, Row};
use volary_bench::report::Run;

/// Beside other programs of today
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary bench peers fat --only 'tree in' --json
  sudo volary bench peers servers --only nfs")]
pub(crate) struct Peers {
    /// fat: mtools, dosfstools, fusefat, fuse2fs and the fatfs crate;
    /// ffs: makefs, sleuthkit, fuse-ufs, fuse2fs and e2fsck;
    /// cedar: fuse2fs, e2fsck, and ext4 on a loop device (that as root);
    /// bulk: tar, ripgrep, b3sum, 7-Zip, sleuthkit, and as many bytes in sequence;
    /// servers: Samba, nfs-ganesha and libfuse's passthrough_ll (as root)
    #[arg(value_parser = peers::ALL)]
    what: String,
    #[command(flatten)]
    how: How,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Peers {
    /// Compares, and prints what was found.
    pub(super) fn run(&self) -> Done<Exit> {
        if self.json {
            let run = self.how.run(&self.what, &mut |_| ())?;
            let mut out = out::out();
            out::json(&mut out, &run)?;
            out::end(out)?;
            return Ok(exit_of(&run));
        }
        out::Raw.write_all(HEAD.as_bytes())?;
        Ok(exit_of(&self.how.run(&self.what, &mut print)?))
    }
}

fn exit_of(run: &Run) -> Exit {
    match run.findings.iter().all(Finding::holds) {
        true => Exit::Done,
        false => Exit::Failed,
    }
}

/// How programs are compared.
#[derive(clap::Args, Debug)]
pub(super) struct How {
    /// Only tasks whose name has this in it
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// How often each is run; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where images and trees are put: in memory, if it can be; on a disk for bulk
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// bulk: so many times fewer files
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    fewer: usize,
    /// bulk: the real tree
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    tree: PathBuf,
}

impl How {
    /// Runs the comparison of this name; `told` hears of each finding as soon as it is there.
    ///
    /// # Errors
    /// If a program fails.
    pub(super) fn run(&self, peers: &str, told: &mut dyn FnMut(&Finding)) -> Done<Run> {
        let options = peers::Options {
            volary: std::env::current_exe().map_err(|e| Fail::host("bench", e))?,
            dir: self.dir.clone(),
            rounds: self.rounds,
            only: self.only.clone(),
        };
        let scale = peers::bulk::Scale {
            fewer: self.fewer,
            tree: self.tree.clone(),
        };
        let found = peers::run(peers, &options, &scale, told).map_err(super::failed::failed)?;
        let date = clock::to_second(clock::now());
        Ok(Run::new(peers, date, &options, found))
    }
}

/// What stands above the findings.
pub(super) const HEAD: &str = "\
Medians, in brackets the shortest and the longest run; the runs of both alternate.
task                       rival        volary                         the rival                      times as fast
";

/// One finding, as soon as it is there.
pub(super) fn print(finding: &Finding) {
    let mut line = match finding {
        Finding::Row(row) => row_line(row),
        Finding::Bound(bound) => bound_line(bound),
        Finding::PerFile(cost) => per_file_line(cost),
        Finding::Missing(Missing { rival, why }) => {
            format!("{:26} {rival:12} not measured: {why}", "")
        }
    };
    if !finding.holds() {
        line.push_str("  MISSED");
    }
    line.push('\n');
    // A closed pipe is no reason to stop measuring.
    let _ = out::Raw.write_all(line.as_bytes());
}

fn row_line(row: &Row) -> String {
    let mut line = format!(
        "{:26} {:12} {}  {}  {:6.2} x (aim {:.1})",
        row.task,
        row.rival,
        times(&row.ours),
        times(&row.theirs),
        row.ratio,
        row.aim
    );
    if row.ours.cpu > 0.0 && row.theirs.cpu > 0.0 {
        line.push_str(&format!(", cpu {:.2} x", row.theirs.cpu / row.ours.cpu));
    }
    if let Some(aim) = row.memory_aim {
        line.push_str(&format!(
            ", memory {} to {}: {:.2} (aim {aim:.1})",
            mib(row.ours.peak),
            mib(row.theirs.peak),
            row.memory()
        ));
    }
    line
}

fn bound_line(bound: &Bound) -> String {
    format!(
        "{:26} {:12} {}  of at most {} s, memory {} of at most {}",
        bound.task,
        "-",
        times(&bound.ours),
        bound.seconds_max,
        mib(bound.ours.peak),
        mib(bound.peak_max)
    )
}

fn per_file_line(cost: &PerFile) -> String {
    let most = match cost.micros_max {
        Some(most) => format!(" of at most {most} us"),
        None => String::new(),
    };
    let PerFile {
        task,
        files,
        micros,
        ..
    } = cost;
    format!(
        "{task:26} {:12} {micros:.2} us of processor a file{most}, {files} files",
        "-"
    )
}

/// Returns the median, and from the shortest to the longest, in milliseconds.
fn times(all: &Summary) -> String {
    let ms = |seconds: f64| seconds * 1e3;
    let spread = format!("({:.1}-{:.1})", ms(all.least), ms(all.most));
    format!("{:8.1} ms {spread:17}", ms(all.median))
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

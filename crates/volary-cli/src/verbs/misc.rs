//! `volary completions`, `volary man`, `volary bench`: about the program itself.

use crate::exit::{Done, Exit, Fail};
use crate::progress::Bar;
use crate::verbs::report::Report;
use crate::{Cli, clock, interrupt, out};
use clap::CommandFactory;
use std::io::Write;
use std::path::{Path, PathBuf};
use volary_bench::measure::Summary;
use volary_bench::paper;
use volary_bench::peers::{self, Bound, Finding, Missing, PerFile, Row};
use volary_bench::report::Run;

/// Prints a script that completes this program's words in a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary completions bash > volary.bash")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Completions {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "volary", &mut text);
        out::Raw.write_all(&text)?;
        Ok(Exit::Done)
    }
}

/// Writes the man pages into a directory.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary man man && man -l man/volary-cp.1")]
pub(crate) struct Man {
    /// The directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        std::fs::create_dir_all(&self.dir).map_err(|e| Fail::host(self.dir.display(), e))?;
        let mut command = Cli::command();
        command.build();
        page(&self.dir, "volary", command.clone())?;
        for verb in command.get_subcommands() {
            let name = format!("volary-{}", verb.get_name());
            page(&self.dir, &name, verb.clone())?;
            for part in verb.get_subcommands().filter(|part| !part.is_hide_set()) {
                page(
                    &self.dir,
                    &format!("{name}-{}", part.get_name()),
                    part.clone(),
                )?;
            }
        }
        Ok(Exit::Done)
    }
}

/// One page: what clap knows, and the exit codes.
fn page(dir: &Path, name: &str, command: clap::Command) -> Done {
    let path = dir.join(format!("{name}.1"));
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(command);
    man.render(&mut text)
        .map_err(|e| Fail::host(path.display(), e))?;
    if name == "volary" {
        text.extend_from_slice(layers_section().as_bytes());
    }
    text.extend_from_slice(exit_section(name).as_bytes());
    std::fs::write(&path, text).map_err(|e| Fail::host(path.display(), e))
}

/// The section of layers: what `--layer` takes.
fn layers_section() -> String {
    let mut text = String::from(
        ".SH LAYERS\nCommands that open volumes put layers over each with \\fB\\-\\-layer\\fR, \
         the first lowest.\n",
    );
    for layer in volary::layers::LAYERS {
        let value = match layer.value {
            "" => String::new(),
            value => format!("=\\fI{value}\\fR"),
        };
        text.push_str(&format!(
            ".TP\n\\fB{}\\fR{value}\n{}\n",
            layer.name, layer.help
        ));
    }
    text
}

/// The section of exit codes of a page.
fn exit_section(name: &str) -> String {
    let codes = if name == "volary-fsck" {
        Exit::FSCK
    } else {
        Exit::COMMON
    };
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    for exit in codes {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", exit.code(), exit.words()));
    }
    text
}

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
    /// Tables and figures of a paper, beside the paper's own
    #[command(after_help = "\
Examples:
  volary bench paper dosfs
  volary bench paper ffs
  volary bench paper ffs --table 2a
  volary bench paper ffs --table 1 /usr/share
  volary bench paper cedar --table 5.4
  volary bench paper daft --table 4 --json
  volary bench paper daft --table fig2 --svg figures
  sudo volary bench paper fifs --table 5-1 --svg figures")]
    Paper {
        /// The paper: dosfs is Forin and Malan's of 1993, ffs McKusick and others' of 1984,
        /// cedar Hagmann's of 1987, daft Guo and Chiueh's, fifs Almeida's of 1999 (as root)
        #[arg(value_parser = ["dosfs", "ffs", "cedar", "daft", "fifs"])]
        paper: String,
        /// Only this table; otherwise all. ffs: 1 waste, 2a reading, 2b writing; cedar: 2 to 5, and
        /// 5.4 group commit; daft: 2 to 4, fig2, and memory, which is section II.C; fifs: 5-1 to
        /// 5-5
        #[arg(long, value_name = "TABLE")]
        table: Option<String>,
        /// ffs: the directory with whose files the volumes of table 1 are filled (default: files
        /// of such lengths as the paper's)
        #[arg(value_name = "DIR")]
        tree: Option<PathBuf>,
        /// cedar, daft, fifs: as JSON
        #[arg(long)]
        json: bool,
        /// daft, fifs: draws the paper's figures into this directory, which is made if it is not
        /// there
        #[arg(long, value_name = "DIR")]
        svg: Option<PathBuf>,
    },
    /// Beside other programs of today
    #[command(after_help = "\
Examples:
  volary bench peers fat --only 'tree in' --json
  sudo volary bench peers servers --only nfs")]
    Peers {
        /// fat: mtools, dosfstools, fusefat, fuse2fs and the fatfs crate;
        /// ffs: makefs, sleuthkit, fuse-ufs, fuse2fs and e2fsck;
        /// cedar: fuse2fs, e2fsck, and ext4 on a loop device (that as root);
        /// bulk: tar, ripgrep, b3sum, 7-Zip, sleuthkit, and as many bytes in sequence;
        /// servers: Samba, nfs-ganesha and libfuse's passthrough_ll (as root)
        #[arg(value_parser = peers::ALL)]
        what: String,
        #[command(flatten)]
        how: HowPeers,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What comparisons with other programs found, as one page
    Report(Report),
}

/// How programs are compared.
#[derive(clap::Args, Debug)]
pub(super) struct HowPeers {
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

impl HowPeers {
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
        let found = peers::run(peers, &options, &scale, told)
            .map_err(|e| Fail::new(Exit::Failed, format!("bench: {e:#}")))?;
        let date = clock::to_second(clock::now());
        Ok(Run::new(peers, date, &options, found))
    }
}

/// Returns the names of a paper's tables.
fn tables_of(paper: &str) -> &'static [&'static str] {
    match paper {
        "ffs" => &["1", "2a", "2b"],
        "cedar" => &paper::cedar::TABLES,
        "daft" => &paper::daft::TABLES,
        "fifs" => &paper::fifs::TABLES,
        _ => &[],
    }
}

/// A benchmark that could not be run.
fn failed(e: impl std::fmt::Display) -> Fail {
    Fail::new(Exit::Failed, format!("bench: {e:#}"))
}

/// Prints tables, as text or as JSON.
fn print_tables(tables: &[paper::table::Table], json: bool) -> Done<Exit> {
    let mut out = out::out();
    match json {
        true => out::json(&mut out, &tables)?,
        false => paper::table::print_all(tables, &mut out).map_err(failed)?,
    }
    out::end(out)?;
    Ok(Exit::Done)
}

/// Draws Figure 2 of the paper daft.
fn draw(dir: &Path) -> Done {
    let drawn = paper::daft::figure2().map_err(failed)?;
    put(dir, "daft-figure-2.svg", &drawn)
}

/// Puts a picture into a directory.
fn put(dir: &Path, name: &str, drawn: &str) -> Done {
    let path = dir.join(name);
    std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&path, drawn))
        .map_err(|e| Fail::host(path.display(), e))
}

/// Measures the paper fifs, and prints and draws what was found.
fn of_fifs(table: Option<&str>, json: bool, svg: Option<&Path>) -> Done<Exit> {
    let volary = std::env::current_exe().map_err(|e| Fail::host("bench", e))?;
    interrupt::catch();
    let found = paper::fifs::find(&volary, table, &Bar::new("measured"));
    // The programs that were being run ended too, which is no fault of theirs.
    interrupt::check()?;
    let found = found.map_err(failed)?;
    if let Some(dir) = svg {
        for (name, drawn) in paper::fifs::pictures(&found) {
            put(dir, &name, &drawn)?;
        }
    }
    print_tables(&paper::fifs::tables(&found), json)
}

/// Prints a paper's tables.
fn of_paper(
    paper: &str,
    table: Option<&str>,
    tree: Option<&Path>,
    (json, svg): (bool, Option<&Path>),
) -> Done<Exit> {
    if svg.is_some() && !["daft", "fifs"].contains(&paper) {
        return Err(Fail::usage("bench: --svg is for the papers daft and fifs"));
    }
    if paper != "ffs" && tree.is_some() {
        return Err(Fail::usage("bench: DIR is for the paper ffs"));
    }
    if let Some(table) = table.filter(|table| !tables_of(paper).contains(table)) {
        let all = tables_of(paper).join(", ");
        let words = format!("bench: --table {table} is none of the paper {paper}: {all}");
        return Err(Fail::usage(words.trim_end_matches(": ")));
    }
    if tree.is_some() && table.is_some_and(|table| table != "1") {
        return Err(Fail::usage("bench: DIR is for table 1"));
    }
    match paper {
        "cedar" => return print_tables(&paper::cedar::tables(table).map_err(failed)?, json),
        "daft" => {
            svg.map_or(Ok(()), draw)?;
            return print_tables(&paper::daft::tables(table).map_err(failed)?, json);
        }
        "fifs" => return of_fifs(table, json, svg),
        _ if json => {
            return Err(Fail::usage(
                "bench: --json is for the papers cedar, daft and fifs",
            ));
        }
        _ => {}
    }
    let mut text = Vec::new();
    let printed = match paper {
        "ffs" => paper::ffs::tables(table, tree, &mut text),
        _ => paper::dosfs::table2(&mut text).and_then(|()| {
            text.push(b'\n');
            paper::dosfs::figures(&mut text)
        }),
    };
    printed.map_err(failed)?;
    out::Raw.write_all(&text)?;
    Ok(Exit::Done)
}

impl Bench {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        match &self.what {
            What::Paper {
                paper,
                table,
                tree,
                json,
                svg,
            } => {
                let how = (*json, svg.as_deref());
                of_paper(paper, table.as_deref(), tree.as_deref(), how)
            }
            What::Peers { what, how, json } => of_peers(what, how, *json),
            What::Report(report) => report.run(),
        }
    }
}

/// Compares, and prints what was found.
fn of_peers(what: &str, how: &HowPeers, json: bool) -> Done<Exit> {
    if json {
        let run = how.run(what, &mut |_| ())?;
        let mut out = out::out();
        out::json(&mut out, &run)?;
        out::end(out)?;
        return Ok(exit_of(&run));
    }
    out::Raw.write_all(HEAD.as_bytes())?;
    Ok(exit_of(&how.run(what, &mut print)?))
}

fn exit_of(run: &Run) -> Exit {
    match run.findings.iter().all(Finding::holds) {
        true => Exit::Done,
        false => Exit::Failed,
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

/// The median, and from the shortest to the longest, in milliseconds.
fn times(all: &Summary) -> String {
    let ms = |seconds: f64| seconds * 1e3;
    let spread = format!("({:.1}-{:.1})", ms(all.least), ms(all.most));
    format!("{:8.1} ms {spread:17}", ms(all.median))
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_each_command_lists_every_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        Man {
            dir: dir.path().into(),
        }
        .run()
        .unwrap();
        let mut pages = 0;
        for page in std::fs::read_dir(dir.path()).unwrap() {
            let path = page.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let is_fsck = path.ends_with("volary-fsck.1");
            for exit in if is_fsck { Exit::FSCK } else { Exit::COMMON } {
                assert!(text.contains(&format!("\\fB{}\\fR\n{}", exit.code(), exit.words())));
            }
            pages += 1;
        }
        let command = Cli::command();
        let parts = command
            .get_subcommands()
            .flat_map(|verb| verb.get_subcommands());
        let parts = parts.filter(|part| !part.is_hide_set()).count();
        assert_eq!(pages, 1 + command.get_subcommands().count() + parts);
    }
}

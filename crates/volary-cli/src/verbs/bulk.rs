//! `volary bulk`: all files of some trees, in the order in which they lie on the disk.
//!
//! | module | what |
//! |---|---|
//! | `filter` | which files |
//! | `names` | what they are called |
//! | `report` | what is told of a run: failures, events, progress, the summary |
//! | `sink` | what becomes of files, and what all kinds of it share |
//! | `sums`, `grep`, `exec`, `tar` | the kinds |

mod exec;
mod filter;
mod grep;
mod names;
mod report;
mod sink;
mod sums;
mod tar;

use self::filter::Filter;
use self::names::Names;
use self::report::Report;
use self::sink::{Nothing, Sink, Told};
use super::mkfs::size;
use crate::exit::{Done, Exit, Fail};
use crate::heap;
use crate::volumes::{At, AttachArgs, Volumes};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use volary::Source;
use volary::bulk::{BulkFileRead, Cleaning, Method, Options, Shuffle};

/// Reads all files of trees, in the order in which they lie on the disk.
///
/// The order is that of the disk, not of the names: a whole tree is read in one sweep, in large
/// requests, and each file is handed over whole. What the disk cannot be asked for directly (compressed
/// or inline files) is read the ordinary way; so are files of a mounted directory, unless the block
/// device below may be read and seeks (`-o raw=always` on any device, `-o raw=never`).
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary bulk disk.img
  volary bulk --sha256 disk.img:/docs
  volary bulk --tar copy.tar disk.img && tar tf copy.tar
  volary bulk --grep 'al.ha' --include '*.txt' tree
  volary bulk --exec 'wc -c' --max-size 1M disk.img
What cannot be read has a line and is counted, the rest is done, and the exit code is 1. A command of
--exec has the file's name in VOLARY_PATH.")]
pub(crate) struct Bulk {
    /// VOLUME, VOLUME:/path, or a directory of the host
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<OsString>,
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    filter: filter::FilterArgs,
    #[command(flatten)]
    how: How,
    /// One JSON object a line: each file, each failure, the summary
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

/// What becomes of the files.
#[derive(clap::Args, Debug)]
#[group(multiple = false)]
struct What {
    /// Nothing: reads, and prints the summary (the default)
    #[arg(long)]
    null: bool,
    /// Prints SHA-256 sums, as sha256sum does
    #[arg(long)]
    sha256: bool,
    /// Prints BLAKE3 sums, as b3sum does
    #[arg(long)]
    blake3: bool,
    /// Writes a tar archive; - for standard output
    #[arg(long, value_name = "FILE")]
    tar: Option<PathBuf>,
    /// Runs a command of the shell for each file, with its content on standard input
    #[arg(long, value_name = "CMD")]
    exec: Option<OsString>,
    /// Prints the lines that a regular expression fits
    #[arg(long, value_name = "REGEX")]
    grep: Option<String>,
}

/// How files are read.
#[derive(clap::Args, Debug)]
struct How {
    /// Bound on the memory for what is read
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    memory: u64,
    /// One file after the other; sorted fragments; sorted fragments, merged
    #[arg(long, value_name = "METHOD", default_value = "daftm", value_parser = ["vanilla", "daftnm", "daftm"])]
    method: String,
    /// Where memory is short: complete what is begun, or sweep several times
    #[arg(long, value_name = "WAY", default_value = "on-demand", value_parser = ["on-demand", "first-fit"])]
    cleaning: String,
    /// Larger files are read in chunks
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = size)]
    whole: u64,
    /// Reads over gaps of this size (default: the device is asked)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    gap: Option<u64>,
    /// Size of requests (default: the device is asked)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    request: Option<u64>,
    /// Requests at a time (default: the device is asked)
    #[arg(long, value_name = "COUNT")]
    depth: Option<usize>,
    /// Files at a time for sums and --grep, and for --exec (default: processors; 1 for --exec)
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// In a random order, within a window of the disk: a loader's order
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Bytes of that window
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size, requires = "shuffle")]
    window: u64,
    /// Prints the summary to standard error
    #[arg(long)]
    summary: bool,
}

impl Bulk {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let to_stdout = self
            .what
            .tar
            .as_deref()
            .is_some_and(|file| file.as_os_str() == "-");
        if self.json && to_stdout {
            let words = "--json and --tar - both take standard output";
            return Err(Fail::usage(words));
        }
        let options = self.how.options(self.threads())?;
        let filter = Filter::new(&self.filter)?;
        // What makes no sense is told before anything is opened.
        let grep = self
            .what
            .grep
            .as_deref()
            .map(grep::expression)
            .transpose()?;
        let run = BulkFileRead::new(options).map_err(|e| Fail::usage(e.to_string()))?;
        let places = places(&self.sources)?;
        crate::interrupt::catch();
        heap::use_huge_pages(self.how.memory >= heap::HUGE_MIN);
        Volumes::run(&self.attach, |volumes| {
            let mut names = Names::default();
            let mut sources: Vec<volary::bulk::Source> = Vec::new();
            for (source, paths) in places {
                let read = volumes.bulk_source(&source)?;
                sources.push(read.places(paths));
                names.push(&source);
            }
            let report = Report::new(self.json, self.prints_summary(), self.what.is_null());
            let sink = self.sink(&sources, grep)?;
            let told = Told::new(&names, &filter, &report, &*sink);
            let summary = run.run(&sources, &told);
            told.end(&summary)
        })
    }

    fn threads(&self) -> usize {
        let is_serial = self.what.tar.is_some() || self.what.is_null();
        let most = match (is_serial, &self.what.exec) {
            (true, _) => return 1,
            (_, Some(_)) => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        self.how.threads.unwrap_or(most.min(Options::THREADS_MAX))
    }

    fn prints_summary(&self) -> bool {
        self.how.summary || rustix::termios::isatty(rustix::stdio::stderr())
    }

    fn sink(
        &self,
        sources: &[volary::bulk::Source],
        grep: Option<regex::bytes::Regex>,
    ) -> Done<Box<dyn Sink>> {
        let what = &self.what;
        Ok(match (grep, &what.exec, &what.tar) {
            (Some(expression), ..) => Box::new(grep::Grep::new(expression)),
            (_, Some(command), _) => Box::new(exec::Exec::new(command.clone())),
            (.., Some(file)) => Box::new(tar::Tar::new(file, sources)?),
            _ if what.sha256 => Box::new(sums::Sums::new(sums::Kind::Sha256)),
            _ if what.blake3 => Box::new(sums::Sums::new(sums::Kind::Blake3)),
            _ => Box::new(Nothing),
        })
    }
}

impl What {
    fn is_null(&self) -> bool {
        let sums = self.sha256 || self.blake3;
        !(sums || self.tar.is_some() || self.exec.is_some() || self.grep.is_some())
    }
}

impl How {
    fn options(&self, workers: usize) -> Done<Options> {
        Ok(Options {
            memory: self.memory,
            method: match self.method.as_str() {
                "vanilla" => Method::Vanilla,
                "daftnm" => Method::DaftNm,
                _ => Method::DaftM,
            },
            cleaning: match self.cleaning.as_str() {
                "first-fit" => Cleaning::FirstFit,
                _ => Cleaning::OnDemand,
            },
            whole_max: self.whole,
            gap: self.gap,
            request: self.request,
            depth: self.depth,
            workers,
            shuffle: self.shuffle.map(|seed| Shuffle {
                seed,
                window: self.window,
            }),
            clock: Some(crate::modelled::stopwatch()),
        })
    }
}

/// Returns what is to be read, by volume: places of one are read together.
///
/// # Errors
/// Of the command line.
fn places(args: &[OsString]) -> Done<Vec<(Source, Vec<Vec<u8>>)>> {
    let mut all: Vec<(Source, Vec<Vec<u8>>)> = Vec::new();
    for arg in args {
        let At { source, path } = place(arg)?;
        match all.iter_mut().find(|(known, _)| *known == source) {
            Some((_, paths)) => paths.push(path),
            None => all.push((source, vec![path])),
        }
    }
    Ok(all)
}

/// A directory of the host is itself; anything else, as for all commands.
fn place(arg: &OsString) -> Done<At> {
    let path = PathBuf::from(arg);
    if path.is_dir() && !arg.as_bytes().ends_with(b":") {
        let source = Source::Host { path };
        let path = b"/".to_vec();
        return Ok(At { source, path });
    }
    At::parse(arg)
}

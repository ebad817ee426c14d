//! `volary conform`: the conformance suite on a volume, or on a mounted directory.

mod report;
mod running;

use crate::clock;
use crate::exit::{Done, Exit, Fail, words};
use crate::out;
use crate::stack::{self, stack};
use crate::volumes::{AttachArgs, Use};
use report::{ReportJson, tell};
use running::Running;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use volary::{Attach, Cancel, Caps, Cred, Ctx, Fs, Name, NodeId, SetAttr, Source};
use volary_test::{Fresh, Manifest, Report, Suite, Within, hostfs, tree, try_out};

/// Holds a volume to the contract of volumes.
///
/// Without --write nothing is changed: all ways to read it must agree. With --against they
/// must agree with a directory or a tar as well. With --write files are made, changed and removed in a
/// directory that is made for it in the root, and removed at the end; all else is left alone. If
/// a case hangs, or the run is interrupted, the directory is left.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary conform disk.img
  volary conform --write disk.img
  volary conform tree
  volary conform --json disk.img
  volary mkfs --size 8M new.img
  volary cp -r tree/. new.img:/
  volary conform --against tree new.img")]
pub(crate) struct Conform {
    /// A volume, or a directory of the host: a mount of any file system
    #[arg(value_name = "VOLUME|DIR")]
    volume: OsString,
    /// Makes and changes files too, in a directory of its own
    #[arg(long, conflicts_with = "against")]
    write: bool,
    /// What the volume should hold: a directory, or a tar
    #[arg(long, value_name = "DIR|TAR")]
    against: Option<PathBuf>,
    /// Only the case of this name
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// How long each case may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Cases that try to change what is there, which on files of others are not tried.
const REFUSALS: [(&[&str], &str); 1] = [(
    &[
        "names_cannot_be_made_without_write",
        "names_cannot_be_removed_or_moved_without_write",
        "attributes_cannot_be_changed_without_write",
        "files_cannot_be_opened_to_write_without_write",
        "an_open_for_reading_cannot_be_written",
    ],
    "no change is tried on what is there",
)];

/// Cases that ask for more than a directory of the host shows.
const NOT_SHOWN: [(&[&str], &str); 2] = [
    (
        &[
            "a_name_can_be_used_again_at_once",
            "a_new_node_is_none_that_was_there_before",
        ],
        "the host does not show which of two nodes with one number is meant",
    ),
    (
        &["a_write_past_the_greatest_size_is_too_big"],
        "Linux writes the part that fits",
    ),
];

/// Cases that a directory fails where gaps are holes, but none can be punched.
const WITHOUT_PUNCHING: [(&[&str], &str); 1] = [(
    &["a_punched_hole_reads_as_zeros"],
    "a hole is refused where there was content",
)];

/// Cases that need a volume of their own.
const SHARED: [(&[&str], &str); 1] = [(
    &[
        "statfs_notices_what_is_written_and_removed",
        "room_comes_back_with_the_last_open",
        "room_comes_back_when_all_is_removed",
        "room_on_a_full_volume_can_be_used_again",
        "a_full_volume_says_so_and_keeps_what_it_has",
        "a_write_that_does_not_fit_changes_nothing",
        "mkdir_on_a_full_volume_changes_nothing",
        "a_file_on_a_full_volume_can_be_overwritten",
        "a_read_only_volume_refuses_every_change",
    ],
    "the volume is shared with what is there, and not filled",
)];

/// Cases that a directory of the host fails by design.
const ON_HOST: [(&[&str], &str); 1] = [(
    &["a_reader_sees_each_write_whole_or_not_at_all"],
    "Linux's page cache takes a write page by page while others read",
)];

/// Cases that a directory of the host passes with `-o suid` only.
const WITH_SUID: [(&[&str], &str); 1] = [(
    &["all_twelve_mode_bits_come_back"],
    "set-uid and set-gid bits of files are set with -o suid only",
)];

/// Cases that NFSv3 cannot express.
const BY_NFS: [(&[&str], &str); 3] = [
    (
        &["a_punched_hole_reads_as_zeros"],
        "NFS does not punch holes",
    ),
    (
        &["an_open_for_reading_takes_no_writes"],
        "NFS has no opens: who opened a file for reading could write it",
    ),
    (
        &[
            "fifos_sockets_and_devices_are_kept",
            "mknod_over_what_is_there_is_refused",
        ],
        "a server may make no devices",
    ),
];

/// Cases that need hard links on the server.
const WITHOUT_LINKS: [(&[&str], &str); 1] = [(
    &["a_replacing_rename_never_leaves_the_name_free"],
    "without hard links an open file is renamed away before another takes its name",
)];

/// What the scratch directory's name begins with.
const SCRATCH: &str = "volary-conform";

impl Conform {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let path = Path::new(&self.volume);
        self.attach.install_plugins();
        if path.is_dir() && !self.attach.is_empty() {
            let words = "a directory is looked at as it is mounted; host:DIR takes layers, options \
                         and a type";
            return Err(Fail::usage(format!("{}: {words}", self.shown())));
        }
        match (path.is_dir(), self.write) {
            (true, false) => self.print(&self.read_dir(path)?),
            (true, true) => self.write_dir(path),
            (false, false) => self.read_volume(),
            (false, true) => self.write_volume(),
        }
    }

    fn print(&self, report: &Report) -> Done<Exit> {
        let mut out = out::out();
        match self.json {
            true => out::json(&mut out, &ReportJson::of(report))?,
            false => tell(&mut out, report)?,
        }
        out::end(out)?;
        Ok(match report.held() {
            true => Exit::Done,
            false => Exit::Failed,
        })
    }

    fn shown(&self) -> String {
        volary::escape(self.volume.as_bytes()).to_string()
    }

    fn fail(&self, what: &dyn std::fmt::Display) -> Fail {
        Fail::new(Exit::Failed, format!("{}: {what}", self.shown()))
    }

    fn run_suite(&self, mut suite: Suite) -> Done<Report> {
        suite = suite.limit(Duration::from_secs(self.limit)).alone(alone);
        if let Some(case) = &self.case {
            suite = suite.only(case);
        }
        if std::io::stderr().is_terminal() && !self.json {
            suite = suite.progress(|case| crate::log::say(&format!("{case}\n")));
        }
        let report = suite.report();
        let ran = report.passed.len() + report.failed.len();
        match &self.case {
            Some(case) if ran + report.skipped.len() + report.left_out.len() == 0 => {
                Err(Fail::usage(format!(
                    "--case {case}: there is no such case for this volume"
                )))
            }
            _ => Ok(report),
        }
    }

    /// Returns the suite that reads: against a manifest, or the volume against itself.
    fn reading<F: Into<Fresh>>(
        &self,
        caps: &Caps,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Done<Suite> {
        let Some(against) = &self.against else {
            return Suite::coherent(self.shown(), make).map_err(|e| self.fail(&e));
        };
        let taken = match against.is_dir() {
            true => Manifest::of_dir(against),
            false => Manifest::of_tar(against),
        };
        let manifest =
            taken.map_err(|e| Fail::new(Exit::Failed, format!("{}: {e}", against.display())))?;
        Ok(Suite::reading(self.shown(), make, &manifest.fitting(caps)))
    }

    fn read_dir(&self, dir: &Path) -> Done<Report> {
        let caps = hostfs::caps_by_looking(dir).map_err(|e| self.fail(&e))?;
        let path = dir.to_path_buf();
        let suite = self.reading(&caps, move || {
            hostfs::open(&path, caps).expect("the directory")
        })?;
        self.run_suite(hostfs::excused(suite).leave_out_all(&REFUSALS))
    }

    fn write_dir(&self, dir: &Path) -> Done<Exit> {
        let name = scratch_name(u16::MAX);
        let scratch = dir.join(&name);
        // Nobody else makes or changes anything in it.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&scratch);
        made.map_err(|e| self.fail(&e))?;
        let running = Running::default();
        let report = self.write_below(&scratch, &running);
        let printed = report.and_then(|report| self.print(&report));
        if !running.end() {
            return Err(self.still_used(&name));
        }
        let removed = std::fs::remove_dir_all(&scratch);
        removed.map_err(|e| self.fail(&format!("{name} is left: {e}")))?;
        printed
    }

    fn still_used(&self, name: &str) -> Fail {
        self.fail(&format!(
            "{name} is left: a case that hangs may still write in it"
        ))
    }

    fn write_below(&self, scratch: &Path, running: &Running) -> Done<Report> {
        let tried = hostfs::try_out(scratch).map_err(|e| self.fail(&e))?;
        let caps = tried.caps;
        let (at, count, running) = (scratch.to_path_buf(), AtomicU32::new(0), running.clone());
        let make = move || {
            let case = running.clone();
            let dir = at.join(count.fetch_add(1, Ordering::Relaxed).to_string());
            let made = std::fs::create_dir(&dir);
            if let Err(e) = made {
                panic!("no directory for the case: {}", words(&e));
            }
            let fs = hostfs::open(&dir, caps);
            let fs = fs.unwrap_or_else(|e| panic!("the directory of the case: {e}"));
            Fresh::new(fs).keeping(case)
        };
        let mut suite = hostfs::excused(Suite::new(self.shown(), make));
        if !tried.punches {
            suite = suite.leave_out_all(&WITHOUT_PUNCHING);
        }
        self.run_suite(suite.leave_out_all(&SHARED).leave_out_all(&NOT_SHOWN))
    }

    fn source(&self) -> Done<Source> {
        crate::volumes::At::parse(&self.volume).map(|at| at.source)
    }

    fn read_volume(&self) -> Done<Exit> {
        let opening = Opening::new(self.source()?, &self.attach, Use::Look)?;
        let first = opening.open()?;
        let caps = first.caps();
        as_root(|cx| first.detach(cx)).map_err(|e| Fail::volume(&opening.source, &e))?;
        drop(first);
        let others = matches!(opening.source, Source::Host { .. } | Source::Nfs(_));
        let opening = Arc::new(opening);
        let each = Arc::clone(&opening);
        let make = move || {
            let fs = each
                .open()
                .unwrap_or_else(|e| panic!("opened again: {}", e.line));
            match others {
                true => {
                    let root = fs.root();
                    Arc::new(Within::new(fs, root).only_read()) as Fs
                }
                false => fs,
            }
        };
        let mut suite = self.reading(&caps, make)?;
        if others {
            suite = suite.leave_out_all(&REFUSALS);
        }
        let report = self.run_suite(suite);
        let exit = report.and_then(|report| self.print(&report));
        opening.tell_of_layers();
        exit
    }

    fn write_volume(&self) -> Done<Exit> {
        let opening = Opening::new(self.source()?, &self.attach, Use::Change)?;
        let fs = opening.open()?;
        let (running, name) = (Running::default(), scratch_name(fs.caps().name_max));
        let fail = |e: volary::Error| Fail::volume(&opening.source, &e);
        let done = make_dir(&fs, fs.root(), &name).map_err(fail);
        let done = done.and_then(|scratch| {
            let tried = match &opening.source {
                Source::Nfs(_) => as_root(|cx| try_out(&fs, cx, scratch)).map_err(fail)?.caps,
                _ => fs.caps(),
            };
            let suite = self.writing(&fs, tried, scratch, &running);
            let report = self.run_suite(opening.excused(suite, &tried)?);
            let printed = report.and_then(|report| self.print(&report));
            if !running.end() {
                return Err(self.still_used(&name));
            }
            let removed =
                as_root(|cx| tree::remove(&fs, cx, fs.root(), Name::new(name.as_bytes())?));
            removed.map_err(|e| self.fail(&format!("{name} is left: {e}")))?;
            printed
        });
        // What hangs may hold what detaching waits for.
        if !running.end() {
            return done;
        }
        let detached = as_root(|cx| fs.detach(cx)).map_err(fail);
        opening.tell_of_layers();
        let exit = done?;
        detached.map(|()| exit)
    }

    /// Returns the suite that writes, each case in a directory of its own in `scratch`, of a volume that
    /// can do what `caps` says.
    fn writing(&self, fs: &Fs, caps: Caps, scratch: NodeId, running: &Running) -> Suite {
        let (below, count, running) = (Arc::clone(fs), AtomicU32::new(0), running.clone());
        let make = move || {
            let case = running.clone();
            let name = count.fetch_add(1, Ordering::Relaxed).to_string();
            let dir = make_dir(&below, scratch, &name).expect("a directory for the case");
            let within = Within::new(Arc::clone(&below), dir).claiming(caps);
            Fresh::new(Arc::new(within)).keeping(case)
        };
        Suite::new(self.shown(), make).leave_out_all(&SHARED)
    }
}

/// How a volume is opened, with its layers, once for each case that reads.
struct Opening {
    source: Source,
    attach: Attach,
    layers: Vec<String>,
    /// What the layers that were made last have to say.
    reports: Mutex<Vec<stack::Report>>,
}

impl Opening {
    fn new(source: Source, args: &AttachArgs, usage: Use) -> Done<Self> {
        args.install_plugins();
        Ok(Self {
            source,
            attach: args.attach(usage)?,
            layers: args.options.layers.clone(),
            reports: Mutex::default(),
        })
    }

    /// Leaves out the cases that this source fails by design.
    fn excused(&self, suite: Suite, caps: &Caps) -> Done<Suite> {
        match &self.source {
            Source::Host { .. } => {
                let suid = self.attach.options.flag("suid", false);
                let suid = suid.map_err(|e| Fail::usage(format!("-o: {e}")))?;
                let suite = suite.own_clock().leave_out_all(&ON_HOST);
                Ok(match suid {
                    true => suite,
                    false => suite.leave_out_all(&WITH_SUID),
                })
            }
            Source::Nfs(_) => {
                let suite = suite.own_clock().leave_out_all(&BY_NFS);
                Ok(match caps.has(Caps::HARD_LINKS) {
                    true => suite,
                    false => suite.leave_out_all(&WITHOUT_LINKS),
                })
            }
            _ => Ok(suite),
        }
    }

    fn open(&self) -> Done<Fs> {
        let opened = crate::modelled::open_volume(&self.source, &self.attach);
        let below = opened.map_err(|e| Fail::volume(&self.source, &e))?.fs;
        match stack(Arc::clone(&below), &self.layers, &self.source) {
            Ok((fs, reports)) => {
                *self.reports.lock().unwrap_or_else(PoisonError::into_inner) = reports;
                Ok(fs)
            }
            Err(e) => {
                // It was not used; the layer's own error is the one to tell.
                let _ = as_root(|cx| below.detach(cx));
                Err(e)
            }
        }
    }

    fn tell_of_layers(&self) {
        for report in &*self.reports.lock().unwrap_or_else(PoisonError::into_inner) {
            crate::log::say(&report());
        }
    }
}

/// Returns the scratch directory's name, short where names are.
fn scratch_name(name_max: u16) -> String {
    let id = std::process::id();
    let name = format!("{SCRATCH}-{id}");
    match name.len() <= name_max.into() {
        true => name,
        false => format!("conf-{id}"),
    }
}

fn make_dir(fs: &Fs, dir: NodeId, name: &str) -> volary::Result<NodeId> {
    let set = match fs.caps().has(Caps::MODES) {
        true => SetAttr::mode(0o700),
        false => SetAttr::default(),
    };
    let made = as_root(|cx| fs.mkdir(cx, dir, Name::new(name.as_bytes())?, &set));
    made.map(|entry| entry.node)
}

/// Returns the command that runs a case alone.
fn alone(case: &str) -> String {
    let words = std::env::args_os().map(|word| volary::escape(word.as_bytes()).to_string());
    format!("{} --case {case}", words.collect::<Vec<_>>().join(" "))
}

fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: clock::now(),
        cancel: &cancel,
    })
}

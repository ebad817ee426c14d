//! `volary conform`: the conformance suite on a volume, or on a mounted directory.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out::{self, Out};
use crate::volumes::{AttachArgs, Use};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use volary::{Attach, Cancel, Cred, Ctx, FileKind, Fs, Name, NodeId, SetAttr, Source};
use volary_test::{Fresh, Manifest, Report, Suite, Within, hostfs, tree};

/// Holds a volume to the contract of volumes.
///
/// Without --write nothing is changed: all ways to read it must agree. With --against they
/// must agree with a directory or a tar as well. With --write files are made, changed and removed in a
/// directory that is made for it in the root, and removed at the end; all else is left alone.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary conform disk.img
  volary conform --against tree disk.img
  volary conform --write disk.img
  volary conform --write /mnt
  volary conform --json disk.img")]
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
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
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

/// What the scratch directory's name begins with.
const SCRATCH: &str = "volary-conform";

impl Conform {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let path = Path::new(&self.volume);
        let report = match (path.is_dir(), self.write) {
            (true, false) => self.read_dir(path)?,
            (true, true) => self.write_dir(path)?,
            (false, false) => self.read_volume()?,
            (false, true) => self.write_volume()?,
        };
        let mut out = out::out();
        match self.json {
            true => out::json(&mut out, &ReportJson::of(&report))?,
            false => tell(&mut out, &report)?,
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

    fn run_suite(&self, mut suite: Suite) -> Report {
        suite = suite.limit(Duration::from_secs(self.limit)).alone(alone);
        if let Some(case) = &self.case {
            suite = suite.only(case);
        }
        if std::io::stderr().is_terminal() && !self.json {
            suite = suite.progress(|case| crate::log::say(&format!("{case}\n")));
        }
        suite.report()
    }

    /// Returns the suite that reads: against a manifest, or the volume against itself.
    fn reading<F: Into<Fresh>>(
        &self,
        caps: &volary::Caps,
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
        Ok(self.run_suite(hostfs::excused(suite).leave_out_all(&REFUSALS)))
    }

    fn write_dir(&self, dir: &Path) -> Done<Report> {
        let scratch = dir.join(format!("{SCRATCH}-{}", std::process::id()));
        std::fs::create_dir(&scratch).map_err(|e| self.fail(&e))?;
        let report = self.write_below(&scratch);
        let removed = std::fs::remove_dir_all(&scratch);
        removed.map_err(|e| self.fail(&format!("{} is left: {e}", scratch.display())))?;
        report
    }

    fn write_below(&self, scratch: &Path) -> Done<Report> {
        let caps = hostfs::caps_by_trying(scratch).map_err(|e| self.fail(&e))?;
        let (at, count) = (scratch.to_path_buf(), AtomicU32::new(0));
        let make = move || {
            let dir = at.join(count.fetch_add(1, Ordering::Relaxed).to_string());
            std::fs::create_dir(&dir).expect("a directory for the case");
            hostfs::open(&dir, caps).expect("the directory of the case")
        };
        let suite = hostfs::excused(Suite::new(self.shown(), make));
        Ok(self.run_suite(suite.leave_out_all(&SHARED)))
    }

    fn source(&self) -> Done<Source> {
        crate::volumes::At::parse(&self.volume).map(|at| at.source)
    }

    fn open(&self, source: &Source, usage: Use) -> Done<(Fs, Attach)> {
        let attach = self.attach.attach(usage)?;
        let opened = crate::modelled::open_volume(source, &attach);
        let opened = opened.map_err(|e| Fail::volume(source, &e))?;
        Ok((opened.fs, attach))
    }

    fn read_volume(&self) -> Done<Report> {
        let source = self.source()?;
        let (first, attach) = self.open(&source, Use::Look)?;
        let caps = first.caps();
        as_root(|cx| first.detach(cx)).map_err(|e| Fail::volume(&source, &e))?;
        let others = matches!(source, Source::Host { .. } | Source::Nfs(_));
        let make = move || {
            let opened = crate::modelled::open_volume(&source, &attach);
            let fs = opened.expect("the volume, once more").fs;
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
        Ok(self.run_suite(suite))
    }

    fn write_volume(&self) -> Done<Report> {
        let source = self.source()?;
        let (fs, _) = self.open(&source, Use::Change)?;
        let report = self.write_in(&source, &fs);
        let detached = as_root(|cx| fs.detach(cx));
        detached.map_err(|e| Fail::volume(&source, &e))?;
        report
    }

    fn write_in(&self, source: &Source, fs: &Fs) -> Done<Report> {
        let fail = |e: volary::Error| Fail::volume(source, &e);
        let name = format!("{SCRATCH}-{}", std::process::id());
        let set = SetAttr::mode(0o700);
        let set = if fs.caps().has(volary::Caps::MODES) {
            set
        } else {
            SetAttr::default()
        };
        let make_dir = move |fs: &Fs, dir: NodeId, name: &str| {
            as_root(|cx| {
                fs.mkdir(cx, dir, Name::new(name.as_bytes())?, &set)
                    .map(|e| e.node)
            })
        };
        let scratch = make_dir(fs, fs.root(), &name).map_err(fail)?;
        let (below, count) = (Arc::clone(fs), AtomicU32::new(0));
        let make = move || {
            let name = count.fetch_add(1, Ordering::Relaxed).to_string();
            let dir = make_dir(&below, scratch, &name).expect("a directory for the case");
            Arc::new(Within::new(Arc::clone(&below), dir)) as Fs
        };
        let suite = Suite::new(self.shown(), make).leave_out_all(&SHARED);
        let report = self.run_suite(suite);
        let removed = as_root(|cx| remove(fs, cx, fs.root(), name.as_bytes()));
        removed.map_err(|e| self.fail(&format!("{name} is left: {e}")))?;
        Ok(report)
    }
}

/// Returns the command that runs a case alone.
fn alone(case: &str) -> String {
    let words = std::env::args_os().map(|word| volary::escape(word.as_bytes()).to_string());
    format!("{} --case {case}", words.collect::<Vec<_>>().join(" "))
}

/// Removes a directory and all below.
fn remove(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: &[u8]) -> volary::Result<()> {
    let node = fs.lookup(cx, dir, Name::new(name)?)?.node;
    for (below, _, kind) in tree::entries(fs, cx, node)? {
        match kind {
            FileKind::Dir => remove(fs, cx, node, &below)?,
            _ => fs.unlink(cx, node, Name::new(&below)?)?,
        }
    }
    fs.rmdir(cx, dir, Name::new(name)?)
}

fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: clock::now(),
        cancel: &cancel,
    })
}

/// Prints what failed, a line each with the contract below, and what did not run, by its reason.
fn tell(out: &mut Out, report: &Report) -> Done {
    for failure in &report.failed {
        writeln!(out, "{failure}")?;
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (what, list) in [("skipped", &report.skipped), ("left out", &report.left_out)] {
        for (_, why) in list {
            *reasons.entry((what, why)).or_default() += 1;
        }
    }
    for ((what, why), count) in reasons {
        writeln!(out, "{count} {what}: {why}")?;
    }
    writeln!(out, "{}", report.summary())?;
    Ok(())
}

#[derive(Serialize)]
struct ReportJson<'a> {
    volume: &'a str,
    passed: &'a [&'static str],
    skipped: Vec<NotRunJson<'a>>,
    left_out: Vec<NotRunJson<'a>>,
    failed: Vec<FailureJson<'a>>,
}

#[derive(Serialize)]
struct NotRunJson<'a> {
    case: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct FailureJson<'a> {
    case: &'static str,
    what: &'a str,
    contract: &'a str,
    operations: &'a [String],
    alone: &'a str,
}

impl<'a> ReportJson<'a> {
    fn of(report: &'a Report) -> Self {
        let not_run = |list: &'a [(&'static str, String)]| {
            list.iter()
                .map(|(case, why)| NotRunJson { case, why })
                .collect()
        };
        let failed = report.failed.iter().map(|failure| FailureJson {
            case: failure.case,
            what: &failure.what,
            contract: failure.contract,
            operations: &failure.operations,
            alone: &failure.alone,
        });
        Self {
            volume: &report.name,
            passed: &report.passed,
            skipped: not_run(&report.skipped),
            left_out: not_run(&report.left_out),
            failed: failed.collect(),
        }
    }
}

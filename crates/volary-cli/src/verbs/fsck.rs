//! `volary fsck`.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out;
use crate::plugins::PluginArgs;
use crate::progress::{self, Bar};
use crate::verbs::info::{FactJson, device, facts_text, found, options_help};
use crate::volumes::kind;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;
use volary::{
    Abilities, Answer, BlockDevice, Check, CheckMode, CheckReport, Finding, Format, Options,
    Severity, Source, TYPE_OPTION, escape,
};

/// Checks volumes, and mends them.
///
/// Without -n, -p or -y it asks for each finding, if there is a terminal; if
/// there is none, nothing is changed. The exit code is that of fsck(8): 0
/// clean, 1 mended, 4 damage left, 8 could not check.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = long_help())]
pub(crate) struct Fsck {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    /// Looks only: nothing is written
    #[arg(short = 'n', long, conflicts_with_all = ["preen", "yes"])]
    no: bool,
    /// Mends what a power cut can leave, without asking; leaves all else
    #[arg(short = 'p', long, visible_short_alias = 'a', conflicts_with = "yes")]
    preen: bool,
    /// Mends everything, without asking
    #[arg(short = 'y', long)]
    yes: bool,
    /// What it is, if it is not to be recognised: fat, ffs, cedar, v7
    #[arg(short = 't', long = "type", value_name = "KIND", value_parser = kind)]
    kind: Option<String>,
    /// The format's own options, with commas between them; fsck --help lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// FFS: goes by the superblock at this sector of 512 bytes, if the first is damaged or another;
    /// without it, by the first replica that is found
    #[arg(short = 'b', long, value_name = "SECTOR")]
    superblock: Option<u64>,
    #[command(flatten)]
    _plugins: PluginArgs,
    /// Notes and figures too
    #[arg(short, long)]
    verbose: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  volary fsck -n disk.img
  volary fsck -y disk.img
  volary fsck -y -o lost=free disk.img
  volary mkfs -t ffs2 --size 64M -o block=16k ffs.img && volary fsck -y -t ffs -b 160 ffs.img
  volary fsck -n --json disk.img";

/// Returns the examples, and the options of each format that has any.
fn long_help() -> String {
    format!(
        "{EXAMPLES}\n{}",
        options_help(|format| format.check_options())
    )
}

#[derive(Serialize)]
struct FindingJson {
    code: &'static str,
    severity: &'static str,
    path: Option<String>,
    offset: Option<u64>,
    message: String,
    repair: String,
    answer: &'static str,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    clean: bool,
    found: u64,
    mended: u64,
    left: u64,
    sectors_written: u64,
    findings: &'a [FindingJson],
    facts: BTreeMap<&'static str, FactJson>,
}

impl Fsck {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        crate::interrupt::catch();
        self.check().map_err(|fail| {
            let exit = match fail.exit {
                Exit::Usage => Exit::CheckUsage,
                Exit::Stopped => Exit::CheckStopped,
                Exit::Done => Exit::Done,
                _ => Exit::CheckFailed,
            };
            Fail { exit, ..fail }
        })
    }

    fn mode(&self) -> CheckMode {
        let can_ask =
            || rustix::termios::isatty(rustix::stdio::stdin()) && out::is_terminal() && !self.json;
        match (self.yes, self.preen, self.no) {
            (true, ..) => CheckMode::Mend,
            (_, true, _) => CheckMode::Preen,
            (_, _, true) => CheckMode::Look,
            _ if can_ask() => CheckMode::Ask,
            _ => CheckMode::Look,
        }
    }

    fn check(&self) -> Done<Exit> {
        let mode = self.mode();
        let read_only = mode == CheckMode::Look;
        let mut options = Options::new();
        self.options.iter().for_each(|text| options.add(text));
        if let Some(sector) = self.superblock {
            options.add(&format!("superblock={sector}"));
        }
        let (source, dev) = device(&self.volume, read_only)?;
        let format = self.format(&source, &dev, &options)?;
        let how = Check {
            mode,
            now: clock::now(),
            options,
        };
        let telling = RefCell::new(Telling {
            how: self,
            mode,
            findings: Vec::new(),
            failed: None,
        });
        let bar = Bar::new("checked");
        let report = format.check(dev, &how, &mut |f| telling.borrow_mut().hear(f), &bar);
        drop(bar);
        let telling = telling.into_inner();
        if let Some(fail) = telling.failed {
            return Err(fail);
        }
        let report = report.map_err(|e| match e.kind() {
            volary::Kind::Invalid => Fail::usage(format!("{source}: {e}")),
            volary::Kind::Interrupted => Fail::stopped(),
            _ => Fail::new(Exit::CheckFailed, format!("{source}: {e}")),
        })?;
        self.tell(&source.to_string(), &report, &telling.findings, format)?;
        Ok(match (report.found, report.left()) {
            (0, _) => Exit::Done,
            (_, 0) => Exit::Mended,
            _ => Exit::Left,
        })
    }

    /// Returns the format, by a replica too: the check finds that itself, and tells of it.
    fn format(
        &self,
        source: &Source,
        dev: &Arc<dyn BlockDevice>,
        options: &Options,
    ) -> Done<&'static dyn Format> {
        let mut options = options.clone();
        if let Some(kind) = &self.kind {
            options.set(TYPE_OPTION, kind.as_str());
        }
        found(source, Arc::clone(dev), &options).map(|found| found.format)
    }

    fn tell(
        &self,
        source: &str,
        report: &CheckReport,
        findings: &[FindingJson],
        format: &dyn Format,
    ) -> Done {
        let mut out = out::out();
        if self.json {
            let json = ReportJson {
                clean: report.left() == 0,
                found: report.found,
                mended: report.mended,
                left: report.left(),
                sectors_written: report.written,
                findings,
                facts: FactJson::all(&report.facts),
            };
            out::json(&mut out, &json)?;
            return out::end(out);
        }
        if self.verbose {
            out.write_all(facts_text(&report.facts).as_bytes())?;
        }
        let words = match (report.found, report.left()) {
            (0, _) => "clean".to_string(),
            (n, 0) => format!("{n} found, all mended"),
            (n, left) => format!(
                "{n} found, {} mended, {left} left; {}",
                report.mended,
                self.advice(format)
            ),
        };
        writeln!(out, "{source}: {words}")?;
        out::end(out)
    }

    fn advice(&self, format: &dyn Format) -> &'static str {
        if self.yes || !format.abilities().has(Abilities::MEND) {
            "save what can be read"
        } else {
            "mend them with: volary fsck -y"
        }
    }
}

/// What has been heard, and what was answered.
struct Telling<'a> {
    how: &'a Fsck,
    mode: CheckMode,
    findings: Vec<FindingJson>,
    failed: Option<Fail>,
}

impl Telling<'_> {
    fn hear(&mut self, finding: &Finding) -> Answer {
        let is_untold = finding.severity == Severity::Note && !self.how.verbose && !self.how.json;
        if is_untold || self.failed.is_some() {
            return Answer::No;
        }
        let answer = match self.tell(finding) {
            Ok(answer) => answer,
            Err(fail) => {
                self.failed.get_or_insert(fail);
                Answer::No
            }
        };
        if self.how.json {
            self.findings.push(json(finding, self.mode, answer));
        }
        answer
    }

    fn tell(&self, finding: &Finding) -> Done<Answer> {
        let mends = !finding.repair.is_empty();
        if self.how.json {
            return Ok(if self.mode == CheckMode::Look {
                Answer::No
            } else {
                Answer::Yes
            });
        }
        let mut out = out::out();
        write!(out, "{}", line(finding))?;
        if !mends {
            writeln!(out)?;
            return out::end(out).map(|()| Answer::No);
        }
        if self.mode != CheckMode::Ask || finding.severity == Severity::Note {
            let does = match self.mode {
                CheckMode::Look => "would be mended: ",
                CheckMode::Preen if finding.severity == Severity::Damage => "left; -y mends: ",
                _ => "mended: ",
            };
            writeln!(out, "; {does}{}", finding.repair)?;
            return out::end(out).map(|()| Answer::Yes);
        }
        write!(out, "\n  {}? [y/n] ", finding.repair)?;
        let answer = progress::suspend(|| {
            out::end(out)?;
            crate::interrupt::read_line()
        })?;
        let is_yes = answer.trim().to_ascii_lowercase().starts_with('y');
        Ok(if is_yes { Answer::Yes } else { Answer::No })
    }
}

/// `code: /path: what is wrong (byte 4096)`.
fn line(finding: &Finding) -> String {
    let path = finding
        .path
        .as_deref()
        .map(|p| format!("{}: ", escape(p)))
        .unwrap_or_default();
    let offset = finding
        .offset
        .map(|o| format!(" (byte {o})"))
        .unwrap_or_default();
    format!("{}: {path}{}{offset}", finding.code, finding.message)
}

fn json(finding: &Finding, mode: CheckMode, answer: Answer) -> FindingJson {
    let answer = match (mode, finding.severity, answer) {
        _ if finding.repair.is_empty() => "none",
        (CheckMode::Look, ..) | (_, _, Answer::No) | (CheckMode::Preen, Severity::Damage, _) => {
            "left"
        }
        _ => "mended",
    };
    FindingJson {
        code: finding.code,
        severity: match finding.severity {
            Severity::Note => "note",
            Severity::Crash => "crash",
            Severity::Damage => "damage",
        },
        path: finding.path.as_deref().map(|p| escape(p).to_string()),
        offset: finding.offset,
        message: finding.message.clone(),
        repair: finding.repair.clone(),
        answer,
    }
}

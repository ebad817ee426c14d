//! `volary quota`: what users and groups have taken of a volume, and how much they may take.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out;
use crate::verbs::attrs::{group_id, user_id};
use crate::volumes::{At, AttachArgs, Use, Volumes};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use volary::{
    Error, Kind, Quota as Entry, QuotaGrace, QuotaLimits, QuotaOf, QuotaShare, Session, SetQuota,
};

/// Shows what users and groups have taken of a volume, and bounds it.
///
/// Whoever goes past a soft limit is named on standard error and has a time of grace, a week unless --grace
/// sets another, after which no more can be taken; a hard limit cannot be
/// passed. Root has no limits. Room is counted as it is taken on the device,
/// with indirect blocks; files are nodes of any kind. A limit of "none" is
/// taken away.
///
/// On FFS volumes the limits are in quota.user and quota.group in the root
/// directory, as 4.4BSD and FreeBSD keep them; those of users are in 4.2BSD's
/// quotas on volumes of 4.3BSD's format, which knows warnings in place of times
/// of grace. --on makes these files and
/// counts what is there; --off removes them, with all limits. With -o noquota
/// a volume is opened as if they were not there.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary mkfs -t ffs2 --size 64M ffs.img
  volary quota --on ffs.img
  volary quota --user 1000 --soft 9M --hard 10M --hard-files 1000 ffs.img
  volary quota --groups --grace 3d --grace-files 12h ffs.img
  volary quota ffs.img
  volary quota --over --json ffs.img")]
pub(crate) struct Quota {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    /// Only this user, by name or number
    #[arg(long, value_name = "USER", value_parser = user_id, conflicts_with_all = ["group", "users", "groups"])]
    user: Option<u32>,
    /// Only this group, by name or number
    #[arg(long, value_name = "GROUP", value_parser = group_id, conflicts_with_all = ["users", "groups"])]
    group: Option<u32>,
    /// Only users
    #[arg(short, long, conflicts_with = "groups")]
    users: bool,
    /// Only groups
    #[arg(short, long)]
    groups: bool,
    /// Room that may be passed for a time of grace: 9M, none
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    soft: Option<Limit>,
    /// Room that is never passed
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    hard: Option<Limit>,
    /// The same for the number of files
    #[arg(long, value_name = "COUNT", value_parser = limit)]
    soft_files: Option<Limit>,
    /// Likewise
    #[arg(long, value_name = "COUNT", value_parser = limit)]
    hard_files: Option<Limit>,
    /// The time of grace for room: 7d, 12h, 30m, 90s
    #[arg(long, value_name = "TIME", value_parser = time)]
    grace: Option<u64>,
    /// The time of grace for files
    #[arg(long, value_name = "TIME", value_parser = time)]
    grace_files: Option<u64>,
    /// Turns quotas on: counts what everybody has taken
    #[arg(long, conflicts_with = "off")]
    on: bool,
    /// Turns quotas off; all limits are forgotten
    #[arg(long)]
    off: bool,
    /// Shows only those who are past a limit
    #[arg(long)]
    over: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

/// A limit on the command line; `None` for "none".
type Limit = Option<u64>;

#[derive(Serialize)]
struct ReportJson {
    of: &'static str,
    grace: u64,
    grace_files: u64,
    quotas: Vec<QuotaJson>,
}

#[derive(Serialize)]
struct QuotaJson {
    id: u32,
    bytes: ShareJson,
    files: ShareJson,
}

#[derive(Serialize)]
struct ShareJson {
    used: u64,
    soft: Option<u64>,
    hard: Option<u64>,
    until: Option<String>,
}

/// The quotas of a kind.
struct Report {
    of: QuotaOf,
    grace: QuotaGrace,
    all: Vec<Entry>,
}

impl Quota {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let at = At::parse(&self.volume)?;
        let one = self.one();
        if self.sets_limits() && one.is_none() {
            let words = "a limit is for one --user or --group; see volary quota --help";
            return Err(Fail::usage(words));
        }
        let asks = [self.on, self.off, self.sets_limits(), self.sets_grace()];
        if asks.iter().filter(|&&asked| asked).count() > 1 {
            let words = "--on, --off, limits and times of grace are set one at a time";
            return Err(Fail::usage(words));
        }
        if one.is_some() && (self.on || self.off || self.sets_grace()) {
            let words = "--on, --off and times of grace are of all --users or --groups";
            return Err(Fail::usage(words));
        }
        if asks.contains(&true) {
            return Volumes::run(&self.attach, |volumes| {
                let session = volumes.session(&at.source, Use::Change)?;
                self.change(&session)
                    .map(|()| Exit::Done)
                    .map_err(|e| failed(&at, &e))
            });
        }
        let reports = Volumes::run(&self.attach, |volumes| {
            let session = volumes.session(&at.source, Use::Look)?;
            self.reports(&session).map_err(|e| failed(&at, &e))
        })?;
        self.print(&reports)?;
        Ok(Exit::Done)
    }

    fn sets_limits(&self) -> bool {
        let limits = [self.soft, self.hard, self.soft_files, self.hard_files];
        limits.iter().any(Option::is_some)
    }

    fn sets_grace(&self) -> bool {
        self.grace.is_some() || self.grace_files.is_some()
    }

    /// Returns the one who is asked for.
    fn one(&self) -> Option<(QuotaOf, u32)> {
        let user = self.user.map(|id| (QuotaOf::Users, id));
        user.or(self.group.map(|id| (QuotaOf::Groups, id)))
    }

    /// Whose quotas are asked for.
    fn kinds(&self) -> impl Iterator<Item = QuotaOf> + use<> {
        let left_out = match (self.users, self.groups, self.one()) {
            (true, _, _) | (_, _, Some((QuotaOf::Users, _))) => Some(QuotaOf::Groups),
            (_, true, _) | (_, _, Some((QuotaOf::Groups, _))) => Some(QuotaOf::Users),
            _ => None,
        };
        QuotaOf::ALL
            .into_iter()
            .filter(move |&of| Some(of) != left_out)
    }

    /// Does what is asked, of each kind that is asked for. Where both are, one that is off is
    /// passed over by `--off` and by times of grace.
    fn change(&self, session: &Session) -> volary::Result<()> {
        if let Some((of, id)) = self.one() {
            return self.set_limits(session, of, id);
        }
        let (mut done, mut off) = (false, None);
        for of in self.kinds() {
            let changed = match (self.on, self.off) {
                (true, _) => session.set_quota(of, &SetQuota::On),
                (_, true) => session.set_quota(of, &SetQuota::Off),
                _ => self.set_grace(session, of),
            };
            match changed {
                Err(e) if e == Kind::NotFound => off = Some(e),
                changed => {
                    changed?;
                    done = true;
                }
            }
        }
        off.filter(|_| !done).map_or(Ok(()), Err)
    }

    fn set_grace(&self, session: &Session, of: QuotaOf) -> volary::Result<()> {
        let before = session.quota(of, 0)?.grace;
        let grace = QuotaGrace {
            bytes: self.grace.unwrap_or(before.bytes),
            nodes: self.grace_files.unwrap_or(before.nodes),
        };
        session.set_quota(of, &SetQuota::Grace(grace))
    }

    fn set_limits(&self, session: &Session, of: QuotaOf, id: u32) -> volary::Result<()> {
        let before = session.quota(of, id)?.quota;
        let before = before.filter(|quota| quota.id == id).unwrap_or_default();
        let changed = |before: &QuotaShare, soft: Option<Limit>, hard: Option<Limit>| {
            let limits = QuotaLimits {
                soft: soft.unwrap_or(before.limits.soft),
                hard: hard.unwrap_or(before.limits.hard),
            };
            match (limits.soft, limits.hard) {
                (Some(soft), Some(hard)) if soft > hard => {
                    let words = format!("the soft limit of {soft} is past the hard one of {hard}");
                    Err(Error::note(Kind::Invalid, words))
                }
                _ => Ok((soft.is_some() || hard.is_some()).then_some(limits)),
            }
        };
        let set = SetQuota::Limits {
            id,
            bytes: changed(&before.bytes, self.soft, self.hard)?,
            nodes: changed(&before.nodes, self.soft_files, self.hard_files)?,
        };
        session.set_quota(of, &set)
    }

    /// Returns what is asked for: of the kinds that are on.
    fn reports(&self, session: &Session) -> volary::Result<Vec<Report>> {
        let (mut reports, mut off) = (Vec::new(), None);
        for of in self.kinds() {
            match self.report(session, of) {
                Err(e) if e == Kind::NotFound => off = Some(e),
                report => reports.push(report?),
            }
        }
        match off {
            Some(e) if reports.is_empty() => Err(e),
            _ => Ok(reports),
        }
    }

    fn report(&self, session: &Session, of: QuotaOf) -> volary::Result<Report> {
        let mut report = Report {
            of,
            grace: session.quota(of, 0)?.grace,
            all: Vec::new(),
        };
        if let Some((_, id)) = self.one() {
            let found = session.quota(of, id)?.quota.filter(|quota| quota.id == id);
            let nothing = Entry {
                id,
                ..Entry::default()
            };
            report.all.push(found.unwrap_or(nothing));
        } else {
            let mut next = Some(0);
            while let Some(from) = next {
                let Some(quota) = session.quota(of, from)?.quota else {
                    break;
                };
                next = quota.id.checked_add(1);
                report.all.push(quota);
            }
        }
        if self.over {
            report
                .all
                .retain(|quota| is_over(&quota.bytes) || is_over(&quota.nodes));
        }
        Ok(report)
    }

    fn print(&self, reports: &[Report]) -> Done {
        let mut out = out::out();
        if self.json {
            let reports: Vec<_> = reports.iter().map(json).collect();
            out::json(&mut out, &reports)?;
        } else {
            out.write_all(table(reports).as_bytes())?;
        }
        out::end(out)
    }
}

/// Returns whether it is past a limit, or where a hard one ends.
fn is_over(share: &QuotaShare) -> bool {
    let QuotaLimits { soft, hard } = share.limits;
    soft.is_some_and(|soft| share.used > soft) || hard.is_some_and(|hard| share.used >= hard)
}

fn table(reports: &[Report]) -> String {
    let head = [
        "Owner", "Used", "Soft", "Hard", "Grace", "Files", "Soft", "Hard", "Grace",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let now = clock::now().secs;
    for report in reports {
        for quota in &report.all {
            let mut row = vec![format!("{} {}", report.of.word(), quota.id)];
            let files = |n: u64| n.to_string();
            for (share, figure) in [
                (&quota.bytes, &out::human as &dyn Fn(u64) -> String),
                (&quota.nodes, &files),
            ] {
                let limit = |limit: Limit| limit.map_or("-".into(), figure);
                let left = |until: volary::Time| match until.secs - now {
                    left @ 1.. => duration(left.unsigned_abs()),
                    _ => "ended".into(),
                };
                row.extend([
                    figure(share.used),
                    limit(share.limits.soft),
                    limit(share.limits.hard),
                    share.until.map_or("-".into(), left),
                ]);
            }
            rows.push(row);
        }
    }
    let mut right = [true; 9];
    right[0] = false;
    let mut text = out::columns(&rows, &right);
    for report in reports {
        let (of, grace) = (report.of.word(), &report.grace);
        let (bytes, nodes) = (duration(grace.bytes), duration(grace.nodes));
        let line = match *grace == QuotaGrace::default() {
            true => format!("No time of grace of {of}s\n"),
            false => format!("Time of grace of {of}s: {bytes} for room, {nodes} for files\n"),
        };
        text.push_str(&line);
    }
    text
}

fn json(report: &Report) -> ReportJson {
    let share = |share: &QuotaShare| ShareJson {
        used: share.used,
        soft: share.limits.soft,
        hard: share.limits.hard,
        until: share.until.map(clock::iso),
    };
    let quotas = report.all.iter().map(|quota| QuotaJson {
        id: quota.id,
        bytes: share(&quota.bytes),
        files: share(&quota.nodes),
    });
    ReportJson {
        of: report.of.word(),
        grace: report.grace.bytes,
        grace_files: report.grace.nodes,
        quotas: quotas.collect(),
    }
}

/// Units of time, the longest first: name, seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// Seconds in the longest unit that has two of them, rounded up; whole days as such.
fn duration(secs: u64) -> String {
    let whole =
        |unit: &&(char, u64)| secs >= 2 * unit.1 || secs >= unit.1 && secs.is_multiple_of(unit.1);
    let (name, unit) = UNITS.iter().find(whole).unwrap_or(&('s', 1));
    format!("{}{name}", secs.div_ceil(*unit))
}

/// Returns a time on the command line, in seconds.
fn time(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no time; write 7d, 12h, 30m or 90s");
    let unit = UNITS.iter().find(|(name, _)| text.ends_with(*name));
    let (digits, unit) = match unit {
        Some((name, unit)) => (text.trim_end_matches(*name), *unit),
        None => (text, 1),
    };
    let count: u64 = digits.parse().map_err(|_| bad())?;
    count.checked_mul(unit).ok_or_else(bad)
}

/// Returns a limit on the command line.
fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(None),
        _ => super::mkfs::size(text)
            .map(Some)
            .map_err(|words| format!("{words} or none")),
    }
}

/// Returns what one line says of a failure.
fn failed(at: &At, e: &Error) -> Fail {
    let source = &at.source;
    let words = match e.kind() {
        Kind::NotFound => format!("{source}: {e}; volary quota --on turns them on"),
        Kind::Unsupported => format!("{source}: volumes of this kind have no quotas"),
        _ => return Fail::at(source, e),
    };
    Fail::new(Exit::Failed, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, secs) in [("7d", 604_800), ("12h", 43_200), ("90s", 90), ("5", 5)] {
            assert_eq!(time(text), Ok(secs));
        }
        for text in ["", "d", "7w", "-1d", "99999999999999999d", "1.5h"] {
            assert!(time(text).is_err(), "{text}");
        }
        for (secs, text) in [
            (604_800, "7d"),
            (86_400, "1d"),
            (90_000, "25h"),
            (5400, "90m"),
            (59, "59s"),
            (0, "0s"),
        ] {
            assert_eq!(duration(secs), text);
        }
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(limit("none"), Ok(None));
        assert_eq!(limit("10M"), Ok(Some(10 << 20)));
        assert!(limit("much").is_err());
    }
}

//! Commands that change attributes: `chmod`, `chown`, `touch`, `truncate`,
//! `attrib`.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::out;
use crate::row;
use crate::verbs::change::{gid, uid};
use crate::verbs::modes::ModeChange;
use crate::volumes::{self, At, AttachArgs, Tally, Use};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use volary::{Attr, Create, FileKind, Kind, Mode, Options, Session, SetAttr, SetTime, Time};

/// Changes permission bits.
///
/// A FAT volume without the UNIX extension keeps only whether a file can be
/// written.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary chmod 600 unix.img:/README.txt
  volary chmod -R u+rwX,go-w unix.img:/docs")]
pub(crate) struct Chmod {
    /// 755, or u+x,go-w
    #[arg(allow_hyphen_values = true)]
    mode: ModeChange,
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// All below, too
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Chmod {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        change(&self.places, &self.attach, self.recursive, &|attr| {
            let mode = self
                .mode
                .apply(attr.mode, attr.kind == FileKind::Dir, volumes::umask());
            (attr.kind != FileKind::Symlink).then(|| SetAttr::mode(mode))
        })
    }
}

/// Sets attributes of places, and of all below if `recursive`.
fn change(
    places: &[OsString],
    attach: &AttachArgs,
    recursive: bool,
    wanted: &dyn Fn(&Attr) -> Option<SetAttr>,
) -> Done<Exit> {
    let tally = RefCell::new(Tally::default());
    let exit = volumes::for_each(places, attach, Use::Change, |session, at| {
        if !recursive {
            let found = volumes::find(session, at)?;
            return set(session, at, &found.attr, wanted);
        }
        row::descend(
            session,
            at,
            &mut |at, attr, _| tally.borrow_mut().take(set(session, at, attr, wanted)),
            &mut |fail| tally.borrow_mut().take(Err(fail)),
        )
    })?;
    Ok(if exit == Exit::Done {
        tally.borrow().exit()
    } else {
        exit
    })
}

fn set(session: &Session, at: &At, attr: &Attr, wanted: &dyn Fn(&Attr) -> Option<SetAttr>) -> Done {
    match wanted(attr) {
        Some(set) => session
            .setattr(attr.node, &set)
            .map(drop)
            .map_err(|e| Fail::at(at, &e)),
        None => Ok(()),
    }
}

/// Changes owners.
///
/// Names of users and groups are those of the host. A FAT volume keeps owners
/// with the UNIX extension only.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary chown 1000:100 unix.img:/README.txt
  volary chown -R root:root unix.img:/docs")]
pub(crate) struct Chown {
    /// USER, USER:GROUP or :GROUP, by name or number
    owner: Owner,
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// All below, too
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Chown {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let set = SetAttr {
            uid: self.owner.uid,
            gid: self.owner.gid,
            ..SetAttr::default()
        };
        change(&self.places, &self.attach, self.recursive, &|_| Some(set))
    }
}

/// `USER`, `USER:GROUP` or `:GROUP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The user, if there is one.
    pub(crate) uid: Option<u32>,
    /// The group, if there is one.
    pub(crate) gid: Option<u32>,
}

impl std::str::FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        let named = |name| Some(name).filter(|name: &&str| !name.is_empty());
        let owner = Self {
            uid: named(user).map(user_id).transpose()?,
            gid: named(group).map(group_id).transpose()?,
        };
        if owner.uid.is_none() && owner.gid.is_none() {
            return Err("no owner; write USER, USER:GROUP or :GROUP".into());
        }
        Ok(owner)
    }
}

/// Returns a user's number, or that of a user of the host.
pub(crate) fn user_id(name: &str) -> Result<u32, String> {
    id(name, "/etc/passwd").ok_or(format!("no user '{name}'; write its number"))
}

/// Returns a group's number, or that of a group of the host.
pub(crate) fn group_id(name: &str) -> Result<u32, String> {
    id(name, "/etc/group").ok_or(format!("no group '{name}'; write its number"))
}

/// Returns a number, or a name out of a file of lines `name:x:number:...`.
fn id(name: &str, file: &str) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().map(|line| line.split(':'));
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(2)?.parse().ok()
}

/// Sets times, and makes files that are not there.
///
/// Times are in UTC: 2026-11-21, "2026-11-21 21:30:05", @SECONDS or now.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary touch disk.img:/new.txt
  volary touch -d '2026-11-21 21:30' disk.img:/README.txt
  volary touch -r tree/a.txt disk.img:/README.txt")]
pub(crate) struct Touch {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// This time
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    date: Option<Time>,
    /// This time, as `[[CC]YY]MMDDhhmm[.ss]`
    #[arg(short = 't', value_name = "STAMP", value_parser = stamp, conflicts_with = "date")]
    stamp: Option<Time>,
    /// The times of this file of the host
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["date", "stamp"])]
    reference: Option<PathBuf>,
    /// Only the time of last access
    #[arg(short)]
    access: bool,
    /// Only the time of last change
    #[arg(short)]
    modified: bool,
    /// Makes no files
    #[arg(short = 'c', long)]
    no_create: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

fn time(text: &str) -> Result<Time, String> {
    clock::parse(text).ok_or_else(|| format!("'{text}' is no time; write '2026-11-21 21:30'"))
}

fn stamp(text: &str) -> Result<Time, String> {
    clock::parse_stamp(text).ok_or_else(|| format!("'{text}' is no stamp; write 202611212130"))
}

impl Touch {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let set = self.times()?;
        volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
            let fail = |e: volary::Error| Fail::at(at, &e);
            let node = match session.walk(&at.path, volary::Follow::Yes) {
                Ok(found) => found.node,
                Err(e) if e.kind() == Kind::NotFound => {
                    if self.no_create {
                        return Ok(());
                    }
                    make_empty(session, at)?
                }
                Err(e) => return Err(fail(e)),
            };
            session.setattr(node, &set).map(drop).map_err(fail)
        })
    }

    fn times(&self) -> Done<SetAttr> {
        let given = self.date.or(self.stamp).map_or(SetTime::Now, SetTime::To);
        let (atime, mtime) = match &self.reference {
            None => (given, given),
            Some(path) => {
                let host = std::fs::metadata(path);
                let host = host.map_err(|e| Fail::host(path.display(), e))?;
                let read = host
                    .accessed()
                    .map_or(SetTime::Now, |t| SetTime::To(t.into()));
                (
                    read,
                    host.modified()
                        .map_or(SetTime::Now, |t| SetTime::To(t.into())),
                )
            }
        };
        let both = self.access == self.modified;
        Ok(SetAttr {
            atime: (both || self.access).then_some(atime),
            mtime: (both || self.modified).then_some(mtime),
            ..SetAttr::default()
        })
    }
}

/// Makes an empty file.
fn make_empty(session: &Session, at: &At) -> Done<volary::NodeId> {
    let (dir, name) = volumes::find_new(session, at, false)?;
    let set = SetAttr::owned(0o644, uid(), gid());
    let made = session.create(dir, &name, Create::Open, Mode::Write, &set);
    let (entry, open) = made.map_err(|e| Fail::at(at, &e))?;
    session.close(open).map_err(|e| Fail::at(at, &e))?;
    Ok(entry.node)
}

/// Cuts files, or makes them longer with zeros.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary truncate -s 64k disk.img:/README.txt
  volary truncate -s +1k disk.img:/README.txt")]
pub(crate) struct Truncate {
    /// The size: 64k, 0x1000; with + or - so much more or less
    #[arg(short, long, allow_hyphen_values = true, value_parser = size_change)]
    size: SizeChange,
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Makes no files
    #[arg(short = 'c', long)]
    no_create: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

#[derive(Clone, Copy, Debug)]
enum SizeChange {
    To(u64),
    More(u64),
    Less(u64),
}

fn size_change(text: &str) -> Result<SizeChange, String> {
    let size = |t: &str| Options::parse_size(t).ok_or(format!("'{text}' is no size; write 64k"));
    match text.as_bytes().first() {
        Some(b'+') => size(text.get(1..).unwrap_or_default()).map(SizeChange::More),
        Some(b'-') => size(text.get(1..).unwrap_or_default()).map(SizeChange::Less),
        _ => size(text).map(SizeChange::To),
    }
}

impl Truncate {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
            let fail = |e: volary::Error| Fail::at(at, &e);
            let mut is_new = false;
            let (node, old) = match session.walk(&at.path, volary::Follow::Yes) {
                Ok(found) => (found.node, found.attr.size),
                Err(e) if e.kind() == Kind::NotFound => {
                    if self.no_create {
                        return Ok(());
                    }
                    is_new = true;
                    (make_empty(session, at)?, 0)
                }
                Err(e) => return Err(fail(e)),
            };
            let new = match self.size {
                SizeChange::To(n) => n,
                SizeChange::More(n) => old.saturating_add(n),
                SizeChange::Less(n) => old.saturating_sub(n),
            };
            let set = session.setattr(node, &SetAttr::size(new));
            if set.is_err()
                && is_new
                && let Ok((dir, name)) = volumes::find_parent(session, at)
            {
                // It was made for this size only; its own error is the one to tell.
                let _ = session.unlink(dir, &name);
            }
            set.map(drop).map_err(fail)
        })
    }
}

/// Shows and changes DOS attributes: Read-only, Hidden, System, Archive.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary attrib disk.img:/README.txt
  volary attrib +r -a disk.img:/README.txt")]
pub(crate) struct Attrib {
    /// +r, -h, +s, -a, and VOLUME:/path
    #[arg(
        required = true,
        allow_hyphen_values = true,
        value_name = "CHANGE|PLACE"
    )]
    words: Vec<OsString>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Attrib {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let (mut set, mut clear, mut places) = (0, 0, Vec::new());
        for word in &self.words {
            match word.as_encoded_bytes() {
                [b'+', letters @ ..] => set |= dos_bits(letters)?,
                [b'-', letters @ ..] => clear |= dos_bits(letters)?,
                _ => places.push(word.clone()),
            }
        }
        if places.is_empty() {
            return Err(Fail::usage("no place; write VOLUME:/path"));
        }
        let changes = set | clear != 0;
        let usage = if changes { Use::Change } else { Use::Look };
        let mut out = out::out();
        let exit = volumes::for_each(&places, &self.attach, usage, |session, at| {
            let found = volumes::find_itself(session, at)?;
            let none = || Fail::at(at, &Kind::Unsupported.into());
            let dos = found.attr.dos.ok_or_else(none)?;
            if !changes {
                return Ok(writeln!(out, "{} {at}", row::dos_letters(dos))?);
            }
            let set = SetAttr {
                dos: Some(dos & !clear | set),
                ..SetAttr::default()
            };
            session
                .setattr(found.node, &set)
                .map(drop)
                .map_err(|e| Fail::at(at, &e))
        })?;
        out::end(out)?;
        Ok(exit)
    }
}

fn dos_bits(letters: &[u8]) -> Done<u8> {
    let mut bits = 0;
    for letter in letters {
        let upper = char::from(letter.to_ascii_uppercase());
        let Some((bit, _)) = row::DOS.iter().find(|(_, l)| *l == upper) else {
            let all = volary::escape(letters);
            return Err(Fail::usage(format!(
                "no DOS attribute '{upper}' in '{all}'; there are r, h, s, a"
            )));
        };
        bits |= bit;
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_by_number_and_name() {
        let owner = |text: &str| text.parse::<Owner>();
        assert_eq!(
            owner("5:6"),
            Ok(Owner {
                uid: Some(5),
                gid: Some(6)
            })
        );
        assert_eq!(
            owner(":6"),
            Ok(Owner {
                uid: None,
                gid: Some(6)
            })
        );
        assert_eq!(
            owner("root"),
            Ok(Owner {
                uid: Some(0),
                gid: None
            })
        );
        assert!(owner("").is_err() && owner("nobody-of-that-name:").is_err());
    }
}

//! Commands that make and take away entries: `mkdir`, `rmdir`, `rm`, `ln`.

use crate::exit::{Done, Exit, Fail};
use crate::row::{self, Row, Seen};
use crate::verbs::modes::ModeChange;
use crate::volumes::{self, At, AttachArgs, Tally, Use};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use volary::{
    Ahead, Attr, Create, FileKind, Follow, Kind, Mode, NodeId, Session, SetAttr, SetXattr,
};

/// Makes directories.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary mkdir disk.img:/new
  volary mkdir -p -m 700 disk.img:/new/a/b")]
pub(crate) struct Mkdir {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Those above too, and none is no error if it is there
    #[arg(short, long)]
    parents: bool,
    /// Its mode, as chmod has it
    #[arg(short, long, value_name = "MODE", default_value = "755")]
    mode: ModeChange,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Mkdir {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mode = self.mode.apply(0o777, true, volumes::umask());
        volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
            if self.parents {
                return make_all(session, at, mode);
            }
            let (dir, name) = volumes::find_parent(session, at)?;
            let set = SetAttr::owned(mode, uid(), gid());
            session
                .mkdir(dir, &name, &set)
                .map(drop)
                .map_err(|e| Fail::at(at, &e))
        })
    }
}

/// Makes a directory and those above it, as far as they are not there.
///
/// # Errors
/// In one line.
pub(crate) fn make_all(session: &Session, at: &At, mode: u32) -> Done {
    let mut dir = session.root();
    let mut path = Vec::new();
    let parts: Vec<&[u8]> = at
        .path
        .split(|&b| b == b'/')
        .filter(|p| !p.is_empty())
        .collect();
    for (i, part) in parts.iter().enumerate() {
        path.push(b'/');
        path.extend_from_slice(part);
        let mode = if i + 1 == parts.len() { mode } else { 0o755 };
        let made = match session.walk_from(dir, part, Follow::Yes) {
            Err(e) if e.kind() == Kind::NotFound => {
                session.mkdir(dir, part, &SetAttr::owned(mode, uid(), gid()))
            }
            Ok(found) if found.attr.kind != FileKind::Dir => Err(Kind::NotDir.into()),
            found => found,
        };
        dir = made
            .map_err(|e| Fail::at(at.with_path(path.clone()), &e))?
            .node;
    }
    Ok(())
}

/// Returns the user, who owns what they make.
pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the user's group.
pub(crate) fn gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Removes empty directories.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary rmdir disk.img:/empty")]
pub(crate) struct Rmdir {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Rmdir {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
            let (dir, name) = find_removed(session, at)?;
            session.rmdir(dir, &name).map_err(|e| Fail::at(at, &e))
        })
    }
}

/// Removes files, and with -r directories.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary rm disk.img:/README.txt
  volary rm -r disk.img:/docs
  volary rm -f disk.img:/not-there")]
pub(crate) struct Rm {
    /// VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Directories too, with all that is below
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// No error for an entry that does not exist
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Rm {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut tally = Tally::default();
        let exit = volumes::for_each(&self.places, &self.attach, Use::Change, |session, at| {
            let (dir, name) = find_removed(session, at)?;
            let found = match session.lookup(dir, &name) {
                Err(e) if e.kind() == Kind::NotFound && self.force => return Ok(()),
                found => found.map_err(|e| Fail::at(at, &e))?,
            };
            if found.attr.kind == FileKind::Dir && !self.recursive {
                let line = format!("{at}: is a directory; use rm -r, or rmdir if it is empty");
                return Err(Fail::new(Exit::Failed, line));
            }
            remove(session, at, dir, &name, &found.attr, &mut tally)
        })?;
        Ok(if exit == Exit::Done {
            tally.exit()
        } else {
            exit
        })
    }
}

/// Returns the directory of what is to be removed, and its name there.
///
/// # Errors
/// As [`volumes::find_parent`]; and for a path that ends in `.` or `..`, which would remove more than it names.
fn find_removed(session: &Session, at: &At) -> Done<(NodeId, Vec<u8>)> {
    if ends_in_dots(&at.path) {
        let line = format!("{at}: a path that ends in . or .. is not removed");
        return Err(Fail::new(Exit::Failed, line));
    }
    volumes::find_parent(session, at)
}

/// Returns whether the last part of a path is `.` or `..`.
fn ends_in_dots(path: &[u8]) -> bool {
    let mut parts = path.split(|&b| b == b'/');
    let last = parts.rfind(|part| !part.is_empty());
    matches!(last, Some(b"." | b".."))
}

/// Refuses to move what ends in `.` or `..`, as [`find_removed`] refuses to remove it.
///
/// # Errors
/// In one line.
pub(crate) fn check_moved(places: &[OsString]) -> Done {
    let ends_in_dots = |place: &&OsString| ends_in_dots(place.as_bytes());
    let Some(place) = places.iter().find(ends_in_dots) else {
        return Ok(());
    };
    let shown = volary::escape(place.as_bytes());
    let line = format!("{shown}: a path that ends in . or .. is not moved");
    Err(Fail::new(Exit::Failed, line))
}

/// Removes an entry; of a directory, all that is in it first.
///
/// # Errors
/// In one line; what lies deeper and cannot be removed goes into `tally`.
pub(crate) fn remove(
    session: &Session,
    at: &At,
    dir: NodeId,
    name: &[u8],
    attr: &Attr,
    tally: &mut Tally,
) -> Done {
    if attr.kind != FileKind::Dir {
        return session.unlink(dir, name).map_err(|e| Fail::at(at, &e));
    }
    let mut removal = Removal {
        session,
        seen: Seen::default(),
        ahead: Ahead::new(session),
        tally,
    };
    removal.ahead.dirs(&[attr.node]);
    removal.empty(at, attr)?;
    session.rmdir(dir, name).map_err(|e| Fail::at(at, &e))
}

/// Removes what is in directories.
struct Removal<'a> {
    session: &'a Session,
    seen: Seen,
    ahead: Ahead,
    tally: &'a mut Tally,
}

impl Removal<'_> {
    /// Removes all that is in a directory. As deep as a path can be: [`Seen`] sees to it.
    fn empty(&mut self, at: &At, dir: &Attr) -> Done {
        self.seen.enter(at, dir)?;
        let rows = row::read_dir(self.session, dir, at)?;
        let mut ready = 0;
        for (number, row) in rows.iter().enumerate() {
            if row.attr.kind == FileKind::Dir {
                let rows = rows.get(number..).unwrap_or_default();
                self.ahead.enter(rows, &mut ready);
            }
            let removed = self.entry(&at.join(&row.name), dir, row);
            self.tally.take(removed)?;
        }
        Ok(())
    }

    /// Removes an entry of a directory, with all that is in it.
    fn entry(&mut self, at: &At, dir: &Attr, row: &Row) -> Done {
        let session = self.session;
        let removed = match row.attr.kind {
            FileKind::Dir => {
                self.empty(at, &row.attr)?;
                session.rmdir(dir.node, &row.name)
            }
            _ => session.unlink(dir.node, &row.name),
        };
        removed.map_err(|e| Fail::at(at, &e))
    }
}

/// Makes a symlink, a second name of a file, or a link to a file of a remote volume.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary ln -s ../README.txt unix.img:/docs/read-me
  volary mkfs -t cedar --size 16M -o remote=disk.img cedar.img
  volary ln --remote -o remote=disk.img /README.txt cedar.img:/readme
A symlink's TARGET is kept as it is written. Without -s it is the VOLUME:/path
that gets one more name, on volumes that can do that. With --remote it is the path
of a file or directory of the volume that a Cedar volume was made to keep files of:
a file is fetched whole when it is first opened, and read here from then on.")]
pub(crate) struct Ln {
    /// What it leads to
    #[arg(value_name = "TARGET")]
    target: OsString,
    /// The new name: VOLUME:/path
    #[arg(value_name = "PLACE")]
    place: OsString,
    /// Makes a symlink
    #[arg(short, long)]
    symbolic: bool,
    /// Makes a link to a file or directory of the volume's remote
    #[arg(long, conflicts_with = "symbolic")]
    remote: bool,
    /// Replaces what is there, unless it is a directory
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    attach: AttachArgs,
}

impl Ln {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        volumes::for_each(
            std::slice::from_ref(&self.place),
            &self.attach,
            Use::Change,
            |session, at| self.make(session, at),
        )
    }

    fn make(&self, session: &Session, at: &At) -> Done {
        let fail = |e: volary::Error| Fail::at(at, &e);
        let (dir, mut name) = match session.walk(&at.path, Follow::Yes) {
            Ok(found) if found.attr.kind == FileKind::Dir => (found.node, Vec::new()),
            // What a link to a remote stands for may be a directory.
            _ => volumes::find_new(session, at, self.remote)?,
        };
        if name.is_empty() {
            let bytes = self.target.as_bytes();
            let last = bytes.split(|&b| b == b'/').rfind(|p| !p.is_empty());
            name = last.unwrap_or_default().to_vec();
        }
        let node = match self.symbolic || self.remote {
            true => None,
            false => Some(self.linked(session, at)?),
        };
        let make = || self.make_at(session, dir, &name, node);
        let made = match self.force {
            true => session.replacing(dir, &name, make),
            false => make(),
        };
        made.map_err(fail)
    }

    /// Returns the file that gets one more name.
    fn linked(&self, session: &Session, at: &At) -> Done<NodeId> {
        let target = At::parse(&self.target)?;
        if target.source != at.source {
            return Err(Fail::at(target, &Kind::CrossVolume.into()));
        }
        Ok(volumes::find_itself(session, &target)?.node)
    }

    /// Makes a link to `node`, or else what the options ask for.
    fn make_at(
        &self,
        session: &Session,
        dir: NodeId,
        name: &[u8],
        node: Option<NodeId>,
    ) -> volary::Result<()> {
        let target = self.target.as_bytes();
        if let Some(node) = node {
            return session.link(node, dir, name).map(drop);
        }
        if self.remote {
            return link_to_remote(session, dir, name, target);
        }
        let set = SetAttr::owned(0o777, uid(), gid());
        session.symlink(dir, name, target, &set).map(drop)
    }
}

/// Where Cedar volumes have the path that a link stands for.
const REMOTE: &[u8] = b"user.cedar.remote";

/// Makes a file or a directory, as `path` has it on the remote, that stands for that.
fn link_to_remote(session: &Session, dir: NodeId, name: &[u8], path: &[u8]) -> volary::Result<()> {
    let set = SetAttr::owned(0o644, uid(), gid());
    let (made, open) = session.create(dir, name, Create::New, Mode::Write, &set)?;
    session.close(open)?;
    let linked = session.setxattr(made.node, REMOTE, path, SetXattr::Any);
    let Err(refused) = linked else {
        return Ok(());
    };
    session.unlink(dir, name)?;
    if refused.kind() != Kind::NotPermitted {
        return Err(refused);
    }
    let made = session.mkdir(dir, name, &SetAttr::owned(0o755, uid(), gid()))?;
    let linked = session.setxattr(made.node, REMOTE, path, SetXattr::Any);
    linked.or_else(|e| session.rmdir(dir, name).and(Err(e)))
}

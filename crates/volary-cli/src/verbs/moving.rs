//! `mv`: by renaming within a volume; from one to another, and between a
//! volume and the host, by copying and then removing.

use crate::copy::{Cp, Trip};
use crate::exit::{Done, Exit, Fail};
use crate::verbs::change::{check_moved, remove};
use crate::verbs::mkfs::size;
use crate::volumes::{self, At, AttachArgs, Tally, Use, Volumes};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use volary::copy::{HostId, host_id};
use volary::{Attr, FileKind, Follow, Kind, NodeId, Place, RenameFlags, Session, Source};

/// Moves and renames.
///
/// What has the form VOLUME:/path is in a volume, all else is on the host.
/// Within a volume, names change. From one volume to another, or to or from the
/// host, all is copied as by cp -a, made durable, and only then removed where it
/// was. If not all could be copied, nothing is removed; nor is it where the target
/// cannot keep hard links, extended attributes, DOS attributes or older versions.
/// Holes are filled, and owners, modes and times are the nearest, where the target
/// has no others.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary mv disk.img:/README.txt disk.img:/READ.ME
  volary mv disk.img:/docs/a.txt disk.img:/docs/b.txt disk.img:/empty
  volary mv disk.img:/docs unix.img:/papers
  volary mv disk.img:/empty/a.txt .")]
pub(crate) struct Mv {
    /// What to move, and last where to
    #[arg(required = true, num_args = 2.., value_name = "PLACE")]
    places: Vec<OsString>,
    /// Leaves what is there
    #[arg(short, long)]
    no_clobber: bool,
    /// Stops before the file with which more than SIZE bytes would be copied, holes not counted
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Where something is, opened to be changed if it is in a volume.
#[derive(Clone)]
enum Spot {
    Host(PathBuf),
    Volume(At, Session),
}

/// An argument, and where what it names is.
struct Argument<'a> {
    text: &'a OsStr,
    spot: Spot,
}

impl<'a> Argument<'a> {
    fn open(volumes: &mut Volumes, text: &'a OsStr) -> Done<Self> {
        let spot = Spot::open(volumes, text)?;
        Ok(Self { text, spot })
    }
}

impl Mv {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        crate::interrupt::catch();
        let Some((last, firsts)) = self.places.split_last() else {
            return Err(Fail::usage("nothing to move"));
        };
        check_moved(firsts)?;
        Volumes::run(&self.attach, |volumes| {
            let target = Argument::open(volumes, last)?;
            let from: Vec<Argument<'_>> = firsts
                .iter()
                .map(|arg| Argument::open(volumes, arg))
                .collect::<Done<_>>()?;
            let is_host = |arg: &Argument<'_>| matches!(arg.spot, Spot::Host(_));
            if is_host(&target) && from.iter().any(is_host) {
                let line = "both are places of the host: use mv; a place in a volume is \
                            VOLUME:/path";
                return Err(Fail::usage(line));
            }
            let into = target.spot.is_dir();
            if !into && from.len() > 1 {
                return Err(Fail::usage(format!(
                    "{}: not a directory; several go into one",
                    target.spot.shown()
                )));
            }
            let mut tally = Tally::default();
            let mut carried = Carried {
                trip: Trip::moving(self.max_size),
                copied: Vec::new(),
                landed: Vec::new(),
                images: volumes.images(),
            };
            for one in &from {
                crate::interrupt::check()?;
                let moved = match (&one.spot, &target.spot) {
                    (Spot::Volume(at, session), Spot::Volume(to, other))
                        if same_volume(session, other) =>
                    {
                        self.rename(session, at, to, into, &mut carried)
                    }
                    _ => self.carry(volumes, one, &target, into, &mut carried),
                };
                tally.take(moved)?;
            }
            carried.end(&target.spot, &mut tally)?;
            Ok(tally.exit())
        })
    }

    fn rename(
        &self,
        session: &Session,
        at: &At,
        target: &At,
        into: bool,
        carried: &mut Carried,
    ) -> Done {
        let (dir, name) = volumes::find_parent(session, at)?;
        let found = session.lookup(dir, &name).map_err(|e| Fail::at(at, &e))?;
        let into = if into {
            Some(volumes::find(session, target)?)
        } else {
            None
        };
        // A new case for a directory's own name is no move into it.
        let into = into.filter(|to| to.node != found.node);
        let (to, new_name) = match into {
            Some(to) => (to.node, name.clone()),
            None => volumes::find_new(session, target, found.attr.kind == FileKind::Dir)?,
        };
        let end = match into {
            Some(_) => target.join(&new_name),
            None => target.clone(),
        };
        let (from, end) = [at, &end]
            .map(|at| Spot::Volume(at.clone(), session.clone()))
            .into();
        carried.check(&from, &end)?;
        let flags = if self.no_clobber {
            RenameFlags::KEEP
        } else {
            RenameFlags::REPLACE
        };
        session
            .rename(dir, &name, to, &new_name, flags)
            .map_err(|e| not_moved(&from, &end, &e))?;
        carried.landed.extend(end.node());
        Ok(())
    }

    /// Copies, into `target` or in its place, and notes what is to be removed.
    fn carry(
        &self,
        volumes: &mut Volumes,
        arg: &Argument<'_>,
        target: &Argument<'_>,
        into: bool,
        carried: &mut Carried,
    ) -> Done {
        let from = &arg.spot;
        let source = from.kind()?;
        let end = if into {
            target.spot.join(&from.name()?)
        } else {
            target.spot.clone()
        };
        self.check_end(from, source, &end)?;
        carried.check(from, &end)?;
        if end.node().is_some_and(|there| from.node() == Some(there)) {
            return Err(not_moved(from, &end, &"both are the same file"));
        }
        // A copy would leave a target that is there in place of a directory alone.
        let copy = Cp::moving(arg.text.to_owned(), target.text.to_owned());
        let exit = copy.within(volumes, &mut carried.trip)?;
        if exit != Exit::Done {
            return Err(Fail::new(
                exit,
                format!("{}: not moved: not all of it could be copied", from.shown()),
            ));
        }
        carried.landed.extend(end.node());
        carried.copied.push((from.clone(), end));
        Ok(())
    }

    /// Whether a move may end there: it never merges two directories, nor puts
    /// a directory in a file's place, or the other way round.
    fn check_end(&self, from: &Spot, source: FileKind, end: &Spot) -> Done {
        let fail = |kind: Kind| Err(not_moved(from, end, &volary::Error::from(kind)));
        let there = match end.kind() {
            Ok(there) => there,
            // What else is wrong with it is for the copy to say.
            Err(_) => return Ok(()),
        };
        if self.no_clobber {
            return fail(Kind::Exists);
        }
        match (source == FileKind::Dir, there == FileKind::Dir) {
            (true, true) if !end.is_empty() => fail(Kind::NotEmpty),
            (true, false) => fail(Kind::NotDir),
            (false, true) => fail(Kind::IsDir),
            _ => Ok(()),
        }
    }
}

fn not_moved(from: &Spot, end: &Spot, why: &dyn std::fmt::Display) -> Fail {
    let line = format!("{}: not moved to {}: {why}", from.shown(), end.shown());
    Fail::new(Exit::Failed, line)
}

/// What was copied, and is to be removed when all is. Names of one file thus stay names of one
/// file, though each was named on its own.
struct Carried {
    trip: Trip,
    /// From where to where.
    copied: Vec<(Spot, Spot)>,
    /// What was moved to the target so far, by copying or renaming.
    landed: Vec<Node>,
    /// The images that are open.
    images: Vec<HostId>,
}

/// A node, however it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Host(HostId),
    /// A volume, by the address of its open state, and the node in it.
    Volume(usize, NodeId),
}

impl Carried {
    /// Refuses to move something over what must stay.
    ///
    /// # Errors
    /// In one line, if what is there was moved there just now, or is an open image.
    fn check(&self, from: &Spot, end: &Spot) -> Done {
        let Some(there) = end.node() else {
            return Ok(());
        };
        if self.landed.contains(&there) {
            let words = "something of that name was moved there before";
            return Err(not_moved(from, end, &words));
        }
        match there {
            Node::Host(id) if self.images.contains(&id) => Err(not_moved(
                from,
                end,
                &"is the image of a volume that is open",
            )),
            _ => Ok(()),
        }
    }

    /// Makes what was copied durable, and removes it where it was.
    ///
    /// # Errors
    /// In one line, if it cannot be made durable; then nothing is removed.
    fn end(self, target: &Spot, tally: &mut Tally) -> Done {
        let Some((_, end)) = self.copied.first() else {
            return Ok(());
        };
        target.make_durable(end)?;
        for (from, _) in &self.copied {
            tally.take(from.remove())?;
        }
        Ok(())
    }
}

impl Spot {
    fn open(volumes: &mut Volumes, arg: &OsStr) -> Done<Self> {
        match volumes::place(arg)? {
            Place::Host(path) => Ok(Self::Host(path)),
            Place::Volume { source, path } => {
                let session = volumes.session(&source, Use::Change)?;
                Ok(Self::Volume(At { source, path }, session))
            }
        }
    }

    /// Returns the node there, if there is one; a symlink is one.
    fn node(&self) -> Option<Node> {
        match self {
            Self::Host(path) => {
                let meta = path.symlink_metadata().ok()?;
                Some(Node::Host((meta.dev(), meta.ino())))
            }
            Self::Volume(at, session) => {
                let node = session.walk(&at.path, Follow::No).ok()?.node;
                match &at.source {
                    Source::Host { path } => host_id(path, node).map(Node::Host),
                    _ => {
                        let volume = std::sync::Arc::as_ptr(session.volume()).addr();
                        Some(Node::Volume(volume, node))
                    }
                }
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Host(path) => volary::escape(path.as_os_str().as_bytes()).to_string(),
            Self::Volume(at, _) => at.to_string(),
        }
    }

    /// Returns what is there; a symlink is one.
    fn kind(&self) -> Done<FileKind> {
        match self {
            Self::Volume(at, session) => Ok(volumes::find_itself(session, at)?.attr.kind),
            Self::Host(path) => {
                let meta = std::fs::symlink_metadata(path).map_err(|e| host_fail(path, &e))?;
                Ok(match meta.file_type() {
                    kind if kind.is_dir() => FileKind::Dir,
                    kind if kind.is_symlink() => FileKind::Symlink,
                    _ => FileKind::File,
                })
            }
        }
    }

    /// Returns whether it is a directory, or a symlink to one.
    fn is_dir(&self) -> bool {
        match self {
            Self::Host(path) => path.is_dir(),
            Self::Volume(at, session) => session
                .walk(&at.path, Follow::Yes)
                .is_ok_and(|found| found.attr.kind == FileKind::Dir),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Host(path) => path.read_dir().is_ok_and(|mut all| all.next().is_none()),
            Self::Volume(at, session) => dir_of(session, at)
                .and_then(|dir| crate::row::read_dir(session, &dir, at))
                .is_ok_and(|all| all.is_empty()),
        }
    }

    /// Returns the last part of its path.
    fn name(&self) -> Done<Vec<u8>> {
        let name = match self {
            Self::Host(path) => path.file_name().map(|n| n.as_bytes().to_vec()),
            Self::Volume(at, _) => Some(at.name().to_vec()).filter(|n| !n.is_empty()),
        };
        name.ok_or_else(|| Fail::usage(format!("{}: has no name to move", self.shown())))
    }

    fn join(&self, name: &[u8]) -> Self {
        match self {
            Self::Host(path) => Self::Host(path.join(OsString::from_vec(name.to_vec()))),
            Self::Volume(at, session) => Self::Volume(at.join(name), session.clone()),
        }
    }

    /// What was copied to `end`, in this place, outlives a power cut from now on.
    fn make_durable(&self, end: &Self) -> Done {
        match self {
            Self::Volume(at, session) => session.sync().map_err(|e| Fail::at(at, &e)),
            Self::Host(path) => {
                let Self::Host(end) = end else { return Ok(()) };
                let parent = end.parent().filter(|p| !p.as_os_str().is_empty());
                let open = std::fs::File::open(parent.unwrap_or(Path::new(".")))
                    .map_err(|e| host_fail(path, &e))?;
                rustix::fs::syncfs(open).map_err(|e| Fail::host(path.display(), e))
            }
        }
    }

    fn remove(&self) -> Done {
        match self {
            Self::Volume(at, session) => {
                let (dir, name) = volumes::find_parent(session, at)?;
                let attr = volumes::find_itself(session, at)?.attr;
                let mut tally = Tally::default();
                remove(session, at, dir, &name, &attr, &mut tally)?;
                match tally.exit() {
                    Exit::Done => Ok(()),
                    exit => Err(Fail::new(
                        exit,
                        format!("{at}: copied, but not all removed"),
                    )),
                }
            }
            // `sim` loses the copy at its end.
            Self::Host(_) if crate::modelled::is_on() => Ok(()),
            Self::Host(path) => {
                let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                let removed = if is_dir {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                };
                removed.map_err(|e| host_fail(path, &e))
            }
        }
    }
}

fn host_fail(path: &Path, error: &std::io::Error) -> Fail {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    Fail::host(path.display(), errno)
}

fn dir_of(session: &Session, at: &At) -> Done<Attr> {
    Ok(volumes::find(session, at)?.attr)
}

fn same_volume(a: &Session, b: &Session) -> bool {
    std::sync::Arc::ptr_eq(a.volume(), b.volume())
}

//! `volary cp`: trees from the host into volumes, out of them, and between
//! them.
//!
//! | module | what |
//! |---|---|
//! | `stream` | a tree on its way, from a thread that reads to one that writes |
//! | `from_host`, `from_volume` | what reads |
//! | `to_host`, `to_volume`, `to_output` | what writes |
//! | `folder` | a directory of the host, and what is made in it |
//! | `helper` | a second thread that makes files of the host |
//! | `content` | a file's data, holes and what cannot be read |
//! | `host_range` | stretches of a volume's file that the host copies from the image |
//! | `how` | what both sinks want to know |
//! | `links` | nodes with several names |
//! | `xattrs` | extended attributes, and DOS attributes in one |
//! | `losses` | what could not be kept |

mod content;
mod folder;
mod from_host;
mod from_volume;
mod helper;
mod host_range;
mod how;
mod links;
mod losses;
mod stream;
mod to_host;
mod to_output;
mod to_volume;
mod xattrs;

pub(crate) use xattrs::is_virtual;

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::progress::Bar;
use crate::verbs::attrs::Owner;
use crate::verbs::change::{gid, uid};
use crate::verbs::mkfs::size;
use crate::volumes::{self, At, AttachArgs, Tally, Use, Volumes};
use from_host::{HostSource, Shared};
use from_volume::VolumeSource;
use how::How;
use links::Links;
use losses::{Losses, Told};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stream::{Budget, Outlet, Sink};
use to_host::HostSink;
use to_output::OutputSink;
use to_volume::VolumeSink;
use volary::{BlockDevice, FileKind, Follow, Kind, NodeId, Place, Session, Source};

/// Copies files and trees: into a volume, out of it, and between volumes.
///
/// What has the form VOLUME:/path is in a volume, all else is on the host;
/// `-` is standard input or output. Times and modes are kept as far as the
/// target can keep them; files of a volume without modes get 0666, directories
/// 0777, less the umask. Symlinks are copied as symlinks with -r. Holes stay holes
/// where the target has any, and are filled with zeros elsewhere.
///
/// With -a, what the target cannot keep has a line for each kind, and the exit
/// code is 1. Who owns a file on the host is set by root alone; others keep what
/// they copy, without its set-uid and set-gid bits.
///
/// What cannot be read of a damaged file is zeros in the copy, and has its line
/// with the bytes that are missing; a file of which nothing can be read is left
/// out. Either way the rest is copied, and the exit code is 1.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary cp tree/a.txt disk.img:/
  volary cp -r tree disk.img:/
  volary cp -r tree/. disk.img:/new
  volary cp -r disk.img:/docs out
  volary cp -r disk.img:/docs unix.img:/
  volary cp -a --max-size 1G unix.img:/docs saved
  echo hello | volary cp - disk.img:/hello.txt")]
pub(crate) struct Cp {
    /// What to copy, and last where to
    #[arg(required = true, num_args = 2.., value_name = "PLACE")]
    places: Vec<OsString>,
    /// Directories too, with all that is below
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Owners and exact modes too, and with -r, for root, devices
    #[arg(short, long)]
    preserve: bool,
    /// Everything: as -rp, and hard links, extended attributes and DOS attributes
    #[arg(short, long)]
    archive: bool,
    /// Stops before the file with which more than SIZE bytes would be copied, holes not counted
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Leaves what is there
    #[arg(short, long)]
    no_clobber: bool,
    /// Replaces only what is older
    #[arg(short, long)]
    update: bool,
    /// Copies what symlinks of the host lead to
    #[arg(short = 'L', long)]
    dereference: bool,
    /// The owner in the volume: USER:GROUP, by name or number (default: you)
    #[arg(long, value_name = "OWNER")]
    owner: Option<Owner>,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Something to copy.
enum From {
    Input,
    Host(PathBuf),
    /// With the device that it is on, if the host may copy from there.
    Volume(Box<At>, Session, Option<Arc<dyn BlockDevice>>),
}

/// Where to.
enum Into {
    Output,
    Host(PathBuf),
    Volume(At, Session),
}

/// What is copied, and the name that it gets in the target's directory; none
/// for what is in the directory alone.
type Job = (From, Option<Vec<u8>>);

/// A copy that is one of several: what it remembers between them, and what it tells.
pub(crate) struct Trip {
    links: Links,
    told: Told,
    budget: Option<Budget>,
}

impl Trip {
    /// For `mv`: hard links between what is moved stay, and what would be lost is told.
    pub(crate) fn moving(max_size: Option<u64>) -> Self {
        Self {
            links: Links::default(),
            told: Told::Content,
            budget: max_size.map(Budget::new),
        }
    }
}

impl Cp {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        crate::interrupt::catch();
        let told = match (self.archive, self.preserve) {
            (true, _) => Told::All,
            (false, true) => Told::Attributes,
            (false, false) => Told::None,
        };
        let mut trip = Trip {
            links: Links::default(),
            told,
            budget: self.max_size.map(Budget::new),
        };
        Volumes::run(&self.attach, |volumes| self.within(volumes, &mut trip))
    }

    /// One place to another with all that is in it, as `mv` wants it: nothing
    /// is left out and nothing is followed.
    pub(crate) fn moving(from: OsString, into: OsString) -> Self {
        Self {
            places: vec![from, into],
            recursive: true,
            preserve: true,
            archive: true,
            max_size: None,
            no_clobber: false,
            update: false,
            dereference: false,
            owner: None,
            attach: AttachArgs::default(),
        }
    }

    /// Runs it on volumes that are open, or are opened.
    pub(crate) fn within(&self, volumes: &mut Volumes, trip: &mut Trip) -> Done<Exit> {
        let (last, firsts) = self
            .places
            .split_last()
            .ok_or_else(|| Fail::usage("nothing to copy"))?;
        // The target first: it is opened to be changed.
        let into = self.target(volumes, last)?;
        let from: Vec<From> = firsts
            .iter()
            .map(|arg| from(volumes, arg))
            .collect::<Done<_>>()?;
        if matches!(into, Into::Host(_)) && from.iter().any(|f| matches!(f, From::Host(_))) {
            let line = "both are places of the host: use cp; a place in a volume is \
                        VOLUME:/path";
            return Err(Fail::usage(line));
        }
        self.copy(from, into, trip)
    }

    fn how(&self) -> How {
        let owner = self.owner;
        How {
            preserve: self.preserve || self.archive,
            no_clobber: self.no_clobber,
            update: self.update,
            uid: owner.and_then(|o| o.uid).unwrap_or_else(uid),
            gid: owner.and_then(|o| o.gid).unwrap_or_else(gid),
            owner_is_given: owner.is_some(),
            umask: 0o022,
        }
    }

    fn target(&self, volumes: &mut Volumes, arg: &OsStr) -> Done<Into> {
        if arg == "-" {
            return Ok(Into::Output);
        }
        match volumes::place(arg)? {
            Place::Host(path) => Ok(Into::Host(path)),
            Place::Volume { source, path } => {
                let session = volumes.session(&source, Use::Change)?;
                Ok(Into::Volume(At { source, path }, session))
            }
        }
    }

    fn copy(&self, from: Vec<From>, into: Into, trip: &mut Trip) -> Done<Exit> {
        let how = self.how();
        let shared = self.shared(&from, &into, trip)?;
        let sides = || (trip.links.made(), shared.losses.clone());
        match into {
            Into::Output => self.pump(&named(from, None)?, &mut OutputSink, &shared, trip),
            Into::Host(path) => {
                let (dir, name) = host_target(&path, from.len())?;
                let images = shared.images.clone();
                let mut sink = HostSink::new(&dir, &how, images, sides())?;
                self.pump(&named(from, name.as_deref())?, &mut sink, &shared, trip)
            }
            Into::Volume(at, session) => {
                let (dir, at, name) = volume_target(&session, &at, from.len())?;
                let same = from.iter().any(|f| is_on(f, &session));
                for from in &from {
                    refuse_into_itself(from, &session, dir)?;
                }
                let mut sink = VolumeSink::new(session, dir, at, &how, same, sides());
                self.pump(&named(from, name.as_deref())?, &mut sink, &shared, trip)
            }
        }
    }

    fn shared(&self, from: &[From], into: &Into, trip: &Trip) -> Done<Shared> {
        let options = self.attach.attach(Use::Look)?.options;
        let masks = ["umask", "fmask", "dmask"];
        let mut places: Vec<&At> = Vec::new();
        places.extend(from.iter().filter_map(|from| match from {
            From::Volume(at, ..) => Some(&**at),
            _ => None,
        }));
        if let Into::Volume(at, _) = into {
            places.push(at);
        }
        Ok(Shared {
            all: self.archive,
            shown_modes: masks.iter().any(|mask| options.get(mask).is_some()),
            failed: AtomicBool::new(false),
            losses: Losses::new(trip.told),
            images: places.into_iter().filter_map(image_of).collect(),
        })
    }

    fn pump(
        &self,
        jobs: &[Job],
        sink: &mut dyn Sink,
        shared: &Shared,
        trip: &mut Trip,
    ) -> Done<Exit> {
        let mut tally = Tally::default();
        let bar = Bar::new("copied");
        let (mut files, mut bytes) = (0, 0);
        let copied = stream::run(
            |outlet| {
                jobs.iter()
                    .try_for_each(|job| self.read(job, outlet, shared, &mut trip.links))
            },
            sink,
            &mut trip.budget,
            &mut tally,
            &mut move |more_files, more_bytes| {
                files += more_files;
                bytes += more_bytes;
                bar.copied(files, bytes);
            },
        );
        let lost = shared.losses.report();
        copied.map_err(|fail| match fail.exit {
            // The sink is full or cannot go on: a failure, not the user's wish.
            Exit::Stopped if !crate::interrupt::is_set() => Fail::new(Exit::Failed, fail.line),
            _ => fail,
        })?;
        let failed = lost || shared.failed.load(Ordering::Relaxed);
        Ok(if failed { Exit::Failed } else { tally.exit() })
    }

    fn read(
        &self,
        (from, name): &Job,
        outlet: &mut Outlet<'_, '_>,
        shared: &Shared,
        links: &mut Links,
    ) -> Done {
        let how = (self.recursive || self.archive, self.dereference);
        let name = name.as_deref();
        match from {
            From::Host(path) => HostSource::new(outlet, how, shared, links).tree(path, name),
            From::Input => HostSource::new(outlet, how, shared, links)
                .standard_input(name.unwrap_or_default(), clock::now()),
            From::Volume(at, session, device) => {
                let volume = (session.clone(), device.clone());
                VolumeSource::new(outlet, volume, how, shared, links).tree(at, name)
            }
        }
    }
}

/// Device and inode of the image that a place is in.
fn image_of(at: &At) -> Option<(u64, u64)> {
    let Source::Image { path, .. } = &at.source else {
        return None;
    };
    let meta = path.metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

fn from(volumes: &mut Volumes, arg: &OsStr) -> Done<From> {
    if arg == "-" {
        return Ok(From::Input);
    }
    match volumes::place(arg)? {
        Place::Host(path) => Ok(From::Host(path)),
        Place::Volume { source, path } => {
            let session = volumes.session(&source, Use::Look)?;
            let device = volumes.device(&source);
            Ok(From::Volume(Box::new(At { source, path }), session, device))
        }
    }
}

/// Gives each its name in the target: the one that the user wrote, or its own.
fn named(from: Vec<From>, name: Option<&[u8]>) -> Done<Vec<Job>> {
    from.into_iter()
        .map(|from| {
            let own = match (name, &from) {
                (Some(name), _) => Some(name.to_vec()),
                (None, From::Host(path)) => match path.as_os_str().as_bytes() {
                    path if path.ends_with(b"/.") || path == b"." => None,
                    _ => path.file_name().map(|n| n.as_bytes().to_vec()),
                },
                (None, From::Volume(at, ..)) => match at.name() {
                    b"" | b"." | b".." => None,
                    name => Some(name.to_vec()),
                },
                (None, From::Input) => {
                    return Err(Fail::usage(
                        "standard input has no name; write VOLUME:/path/name",
                    ));
                }
            };
            Ok((from, own))
        })
        .collect()
}

/// Returns the directory to write into, and the name to write as, if the target is
/// not a directory that is there.
fn host_target(path: &Path, count: usize) -> Done<(PathBuf, Option<Vec<u8>>)> {
    if path.is_dir() {
        return Ok((path.into(), None));
    }
    if count > 1 {
        return Err(Fail::usage(format!(
            "{}: not a directory that is there; several go into one",
            path.display()
        )));
    }
    let Some(name) = path.file_name() else {
        return Err(Fail::host(path.display(), rustix::io::Errno::NOENT));
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    Ok((
        parent.unwrap_or(Path::new(".")).into(),
        Some(name.as_bytes().to_vec()),
    ))
}

fn volume_target(session: &Session, at: &At, count: usize) -> Done<(NodeId, At, Option<Vec<u8>>)> {
    match session.walk(&at.path, Follow::Yes) {
        Ok(found) if found.attr.kind == FileKind::Dir => Ok((found.node, at.clone(), None)),
        Ok(_) if count > 1 => Err(Fail::at(at, &Kind::NotDir.into())),
        Err(e) if e.kind() != Kind::NotFound => Err(Fail::at(at, &e)),
        Err(_) if count > 1 => Err(Fail::usage(format!(
            "{at}: not a directory that is there; several go into one"
        ))),
        _ => {
            let (dir, name) = volumes::find_parent(session, at)?;
            let end = at
                .path
                .iter()
                .rposition(|b| *b != b'/')
                .map_or(0, |i| i + 1);
            let parent = at.path.get(..end - name.len().min(end)).unwrap_or_default();
            Ok((dir, at.with_path(parent.to_vec()), Some(name)))
        }
    }
}

fn is_on(from: &From, session: &Session) -> bool {
    matches!(from, From::Volume(_, s, _) if Arc::ptr_eq(s.volume(), session.volume()))
}

/// A directory cannot be copied into itself: it would never end.
fn refuse_into_itself(from: &From, session: &Session, target: NodeId) -> Done {
    let From::Volume(at, ..) = from else {
        return Ok(());
    };
    if !is_on(from, session) {
        return Ok(());
    }
    let Ok(source) = session.walk(&at.path, Follow::Yes) else {
        return Ok(());
    };
    let mut dir = target;
    // As many steps as a path can have.
    for _ in 0..volary::PATH_MAX {
        if dir == source.node {
            return Err(Fail::usage(format!(
                "{at}: a directory cannot be copied into itself"
            )));
        }
        let up = session
            .lookup(dir, b"..")
            .map_err(|e| Fail::at(at, &e))?
            .node;
        if up == dir {
            break;
        }
        dir = up;
    }
    Ok(())
}

//! A copy as a whole: its sources, its target and its result.

use crate::how::CopyOptions;
use crate::nodes::ids::{HostId, Id, host_dirs, of_stat, stat};
use crate::nodes::links::Links;
use crate::nodes::place::VolumePlace;
use crate::sinks::target::{HostTarget, VolumeTarget, own_name};
use crate::sinks::to_host::HostSink;
use crate::sinks::to_output::OutputSink;
use crate::sinks::to_volume::{Spared, VolumeSink};
use crate::sources::from_host::{HostSource, Input, Shared};
use crate::sources::from_volume::VolumeSource;
use crate::stream::{self, Budget, Outlet, Sink, Tally};
use crate::told::failure::{Done, Failure, Why};
use crate::told::losses::{Losses, Told};
use crate::told::observer::{Observer, Report};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use volary_core::{FileKind, Kind, escape};
use volary_session::{Follow, Session};

/// Something to copy.
pub enum Origin<'a> {
    /// A path of the host. A path that ends with `/.` means the entries of a directory, without the
    /// directory itself.
    Host(PathBuf),
    /// A place in a volume.
    Volume(VolumePlace),
    /// A stream, read to its end. The target must name the file that it is copied to.
    Input {
        /// The stream.
        from: Box<dyn Read + 'a>,
        /// The stream's name, for messages.
        place: &'a str,
    },
}

/// Where to copy to.
pub enum Target<'a> {
    /// A path of the host: an existing directory to copy into, or the new path.
    Host(PathBuf),
    /// A place in a volume, with the same meaning.
    Volume(VolumePlace),
    /// An output that gets the contents of files, one after the other.
    Output {
        /// The output.
        to: &'a mut (dyn Write + Send),
        /// The output's name, for messages.
        place: &'a str,
    },
}

/// The result of a copy.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files that were copied, as far as they could be read.
    pub files: u64,
    /// Bytes of these files, without holes.
    pub bytes: u64,
    /// Something could not be read: it was left out, or replaced by zeros.
    pub is_incomplete: bool,
    /// The target could not keep something, and such losses were to be reported.
    pub is_lossy: bool,
    /// The first failure to write.
    pub unwritten: Option<Failure>,
}

impl Summary {
    /// Returns whether everything was copied, and nothing was lost that was to be reported.
    pub fn is_whole(&self) -> bool {
        !self.is_incomplete && !self.is_lossy && self.unwritten.is_none()
    }
}

/// A series of copies. Hard links between files are kept even if different copies of the series
/// meet them.
#[derive(Debug)]
pub struct Copies {
    links: Links,
    told: Told,
    /// Images that are open, besides those of sources and targets.
    images: Vec<HostId>,
    budget: Option<Budget>,
}

impl Copies {
    /// Returns an empty series. `told` says which losses are reported. At most `max` bytes are
    /// copied, holes not counted.
    pub fn new(told: Told, max: Option<u64>) -> Self {
        Self {
            links: Links::default(),
            told,
            images: Vec::new(),
            budget: max.map(Budget::new),
        }
    }

    /// Keeps images from being copied, and from being written over, as those of the copy's own
    /// volumes are.
    pub fn spare(&mut self, images: Vec<HostId>) {
        self.images = images;
    }

    /// Copies all of `origins` to `target`. Reports failures to `observer`, and goes on with the
    /// rest.
    ///
    /// # Errors
    /// Those that keep everything, or the rest, from being copied: a target that does not exist or
    /// is full; several origins for a target that is no directory; a directory into itself; an
    /// observer that stops the copy.
    pub fn copy(
        &mut self,
        origins: Vec<Origin<'_>>,
        target: Target<'_>,
        how: &CopyOptions,
        observer: &dyn Observer,
    ) -> Result<Summary, Failure> {
        let mut images = images(&origins, &target);
        images.extend_from_slice(&self.images);
        let shared = Shared {
            all: how.everything,
            shown_modes: how.shown_modes,
            report: Report::new(observer),
            losses: Losses::new(self.told),
            images,
        };
        let (made, losses) = (self.links.made(), shared.losses.clone());
        let count = origins.len();
        match target {
            Target::Output { to, place } => {
                let mut sink = OutputSink {
                    output: to,
                    place,
                    observer,
                };
                self.pump(named(origins, None)?, &mut sink, how, &shared)
            }
            Target::Host(path) => {
                let HostTarget {
                    dir,
                    name,
                    is_for_dir,
                } = HostTarget::of(&path, count)?;
                if is_for_dir && origins.iter().any(|origin| origin.is_no_dir(how)) {
                    let shown = escape(path.as_os_str().as_bytes()).to_string();
                    return Err(Failure::host(shown, Errno::NOTDIR));
                }
                if origins.iter().any(Origin::is_of_host) {
                    refuse_into_itself(&origins, &host_dirs(&dir), how)?;
                }
                let images = shared.images.clone();
                let mut sink = HostSink::new(&dir, how, images, made, losses, observer)?;
                self.pump(named(origins, name.as_deref())?, &mut sink, how, &shared)
            }
            Target::Volume(place) => {
                let session = place.session.clone();
                let into = VolumeTarget::of(&session, &place.at(), count)?;
                if into.is_for_dir && origins.iter().any(|origin| origin.is_no_dir(how)) {
                    return Err(Failure::at(&place.at(), Kind::NotDir.into()));
                }
                let ids = place.ids();
                let above = place.host_dir.as_deref();
                let above = above.filter(|_| origins.iter().any(Origin::is_of_host));
                if above.is_some() || origins.iter().any(|origin| origin.is_on(&session)) {
                    let mut dirs = into.dirs(&session, ids)?;
                    dirs.extend(above.map(host_dirs).unwrap_or_default());
                    refuse_into_itself(&origins, &dirs, how)?;
                }
                let spared = Spared {
                    ids,
                    images: shared.images.clone(),
                };
                let mut sink = VolumeSink::new(session, &into, how, spared, made, losses, observer);
                let jobs = named(origins, into.name.as_deref())?;
                self.pump(jobs, &mut sink, how, &shared)
            }
        }
    }

    fn pump(
        &mut self,
        mut jobs: Vec<Job<'_>>,
        sink: &mut dyn Sink,
        how: &CopyOptions,
        shared: &Shared<'_>,
    ) -> Result<Summary, Failure> {
        let mut tally = Tally::default();
        let (links, observer) = (&mut self.links, shared.report.observer);
        let copied = stream::run(
            |outlet| {
                let mut jobs = jobs.iter_mut();
                jobs.try_for_each(|job| job.read(outlet, how, shared, links))
            },
            sink,
            &mut self.budget,
            &mut tally,
            observer,
        );
        let is_lossy = shared.losses.report(&mut |lost| observer.lost(&lost));
        copied?;
        Ok(Summary {
            files: tally.files,
            bytes: tally.bytes,
            is_incomplete: shared.report.is_incomplete(),
            is_lossy,
            unwritten: tally.first,
        })
    }
}

/// What an origin names.
struct Found {
    id: Id,
    is_dir: bool,
}

impl Origin<'_> {
    fn is_on(&self, session: &Session) -> bool {
        matches!(self, Self::Volume(place) if place.is_on(session))
    }

    /// Returns whether its nodes are nodes of the host.
    fn is_of_host(&self) -> bool {
        match self {
            Self::Host(_) => true,
            Self::Volume(place) => place.host_dir.is_some(),
            Self::Input { .. } => false,
        }
    }

    /// Returns the node that is copied, and whether it is a directory. `None` for a stream, and for
    /// what cannot be found.
    fn found(&self, how: &CopyOptions) -> Option<Found> {
        // As in cp, without -r a symlink that the user names is followed.
        let follows = how.dereference || !how.recursive;
        match self {
            Self::Host(path) => stat(path, follows).map(|stat| Found {
                id: Id::Host(of_stat(&stat)),
                is_dir: FileKind::from_mode(stat.st_mode) == Some(FileKind::Dir),
            }),
            Self::Volume(place) => {
                let follow = if follows { Follow::Yes } else { Follow::No };
                let found = place.session.walk(&place.path, follow).ok()?;
                Some(Found {
                    id: place.ids().of(found.node),
                    is_dir: found.attr.kind == FileKind::Dir,
                })
            }
            Self::Input { .. } => None,
        }
    }

    /// Returns whether it is known to be no directory.
    fn is_no_dir(&self, how: &CopyOptions) -> bool {
        match self {
            Self::Input { .. } => true,
            _ => self.found(how).is_some_and(|found| !found.is_dir),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Host(path) => escape(path.as_os_str().as_bytes()).to_string(),
            Self::Volume(place) => place.at().to_string(),
            Self::Input { place, .. } => (*place).to_owned(),
        }
    }
}

/// Refuses to copy a directory into itself, as that would never end. `dirs` are the target's
/// directory and all above it.
///
/// # Errors
/// `IntoItself`.
fn refuse_into_itself(origins: &[Origin<'_>], dirs: &[Id], how: &CopyOptions) -> Done {
    for origin in origins {
        let found = origin.found(how);
        if found.is_some_and(|found| dirs.contains(&found.id)) {
            return Err(Failure::new(origin.shown(), Why::IntoItself));
        }
    }
    Ok(())
}

/// Returns device and inode of the images that are open.
fn images(origins: &[Origin<'_>], target: &Target<'_>) -> Vec<HostId> {
    let of_origin = |origin: &Origin<'_>| match origin {
        Origin::Volume(place) => place.image,
        _ => None,
    };
    let mut images: Vec<_> = origins.iter().filter_map(of_origin).collect();
    if let Target::Volume(place) = target {
        images.extend(place.image);
    }
    images
}

/// An origin, and its name in the target's directory. `None` copies the entries of a directory
/// without the directory.
struct Job<'a> {
    origin: Origin<'a>,
    name: Option<Vec<u8>>,
}

impl Job<'_> {
    fn read(
        &mut self,
        outlet: &mut Outlet<'_, '_>,
        how: &CopyOptions,
        shared: &Shared<'_>,
        links: &mut Links,
    ) -> Done {
        let name = self.name.as_deref();
        match &mut self.origin {
            Origin::Host(path) => HostSource::new(outlet, how, shared, links).tree(path, name),
            Origin::Input { from, place } => {
                let input = Input {
                    from: &mut **from,
                    place,
                };
                let mut source = HostSource::new(outlet, how, shared, links);
                source.input(input, name.unwrap_or_default(), how.now)
            }
            Origin::Volume(place) => {
                let mut source = VolumeSource::new(outlet, place, how, shared, links);
                source.tree(&place.at(), name)
            }
        }
    }
}

/// Gives each origin its name in the target: the one that the user wrote, or its own.
fn named<'a>(origins: Vec<Origin<'a>>, name: Option<&[u8]>) -> Done<Vec<Job<'a>>> {
    let job = |origin| {
        let own = match (name, &origin) {
            (Some(name), _) => Some(name.to_vec()),
            (None, Origin::Host(path)) => own_name(path),
            (None, Origin::Volume(place)) => match place.at().name() {
                b"" | b"." | b".." => None,
                name => Some(name.to_vec()),
            },
            (None, Origin::Input { place, .. }) => {
                return Err(Failure::new(*place, Why::NoName));
            }
        };
        Ok(Job { origin, name: own })
    };
    origins.into_iter().map(job).collect()
}

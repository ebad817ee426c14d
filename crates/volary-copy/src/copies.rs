//! A copy as a whole: what, where to, and what came of it.

use crate::failure::{Done, Failure, Why};
use crate::from_host::{HostSource, Input, Shared};
use crate::from_volume::VolumeSource;
use crate::how::CopyOptions;
use crate::links::Links;
use crate::losses::{Losses, Told};
use crate::observer::{Observer, Report};
use crate::place::VolumePlace;
use crate::stream::{self, Budget, Outlet, Sink, Tally};
use crate::target::{HostTarget, VolumeTarget, own_name};
use crate::to_host::HostSink;
use crate::to_output::OutputSink;
use crate::to_volume::VolumeSink;
use std::io::{Read, Write};
use std::path::PathBuf;

/// Something to copy.
pub enum Origin<'a> {
    /// A path of the host. What ends with `/.` is all that is in a directory, and not the directory itself.
    Host(PathBuf),
    /// A place in a volume.
    Volume(VolumePlace),
    /// A stream, read to its end. The target must name the file that it is copied to.
    Input {
        /// Where they come from.
        from: Box<dyn Read + 'a>,
        /// What that is, for messages.
        place: &'a str,
    },
}

/// Where to.
pub enum Target<'a> {
    /// A path of the host: a directory to copy into, or what is made.
    Host(PathBuf),
    /// A place in a volume, the same way.
    Volume(VolumePlace),
    /// The contents of files, one after the other.
    Output {
        /// Where they go.
        to: &'a mut (dyn Write + Send),
        /// What that is, for messages.
        place: &'a str,
    },
}

/// What came of a copy.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files that were copied, as far as they could be read.
    pub files: u64,
    /// Their bytes, without holes.
    pub bytes: u64,
    /// Something could not be read: it is left out, or zeros are in its place.
    pub is_incomplete: bool,
    /// The target could not keep something of which it was to be told.
    pub is_lossy: bool,
    /// The first of what could not be written.
    pub unwritten: Option<Failure>,
}

impl Summary {
    /// Returns whether everything was copied, and kept as far as that was to be told.
    pub fn is_whole(&self) -> bool {
        !self.is_incomplete && !self.is_lossy && self.unwritten.is_none()
    }
}

/// Copies that belong together: names of one file stay names of one file, though each was copied on its own.
#[derive(Debug)]
pub struct Copies {
    links: Links,
    told: Told,
    budget: Option<Budget>,
}

impl Copies {
    /// Returns the first of some copies. Of what a target cannot keep, `told` is told; no more than `max` bytes are
    /// copied, holes not counted.
    pub fn new(told: Told, max: Option<u64>) -> Self {
        Self {
            links: Links::default(),
            told,
            budget: max.map(Budget::new),
        }
    }

    /// Copies all of `origins` to `target`. What cannot be copied is told to `observer`, and the rest is copied.
    ///
    /// # Errors
    /// What keeps all of it from being copied, or the rest: a target that there is not or that is full; several for
    /// a target that is no directory; a directory into itself; an observer who wants no more.
    pub fn copy(
        &mut self,
        origins: Vec<Origin<'_>>,
        target: Target<'_>,
        how: &CopyOptions,
        observer: &dyn Observer,
    ) -> Result<Summary, Failure> {
        let images = images(&origins, &target);
        let shared = Shared {
            all: how.everything,
            shown_modes: how.shown_modes,
            report: Report::new(observer),
            losses: Losses::new(self.told),
            images,
        };
        let sides = (self.links.made(), shared.losses.clone());
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
                let HostTarget { dir, name } = HostTarget::of(&path, count)?;
                let images = shared.images.clone();
                let mut sink = HostSink::new(&dir, how, images, sides, observer)?;
                self.pump(named(origins, name.as_deref())?, &mut sink, how, &shared)
            }
            Target::Volume(place) => {
                let session = place.session.clone();
                let into = VolumeTarget::of(&session, &place.at(), count)?;
                let mut is_same = false;
                for origin in &origins {
                    if let Origin::Volume(from) = origin
                        && from.is_on(&session)
                    {
                        is_same = true;
                        into.refuse(from, &session)?;
                    }
                }
                let VolumeTarget { dir, at, name } = into;
                let mut sink = VolumeSink::new(session, dir, at, how, is_same, sides, observer);
                self.pump(named(origins, name.as_deref())?, &mut sink, how, &shared)
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

/// Device and inode of the images that are open.
fn images(origins: &[Origin<'_>], target: &Target<'_>) -> Vec<(u64, u64)> {
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

/// What is copied, and the name that it gets in the target's directory; none for what is in the directory alone.
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
        let which = (how.recursive, how.dereference);
        let name = self.name.as_deref();
        match &mut self.origin {
            Origin::Host(path) => HostSource::new(outlet, which, shared, links).tree(path, name),
            Origin::Input { from, place } => {
                let input = Input {
                    from: &mut **from,
                    place,
                };
                let mut source = HostSource::new(outlet, which, shared, links);
                source.input(input, name.unwrap_or_default(), how.now)
            }
            Origin::Volume(place) => {
                let volume = (place.session.clone(), place.device.clone());
                let mut source = VolumeSource::new(outlet, volume, which, shared, links);
                source.tree(&place.at(), name)
            }
        }
    }
}

/// Gives each its name in the target: the one that the user wrote, or its own.
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

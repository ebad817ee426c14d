//! Batches of whole files. While some files are read, the next ones are opened.

use crate::kernel::ring::{DEPTH, Flight, Ring};
use crate::kernel::stat::{from_statx, look};
use crate::operations::files::Files;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Cancel, FileKind, Mode, Whole};

/// Idle rings.
struct Rings(Mutex<State>);

enum State {
    /// No ring has been requested yet.
    Unasked,
    Idle(Vec<Ring>),
    /// The host or the user does not permit rings.
    Unavailable,
}

impl Rings {
    fn new(wanted: bool) -> Self {
        Self(Mutex::new(match wanted {
            true => State::Unasked,
            false => State::Unavailable,
        }))
    }

    /// Returns an idle ring, or a new one.
    fn take(&self) -> Option<Ring> {
        let mut state = self.0.lock();
        let made = match &mut *state {
            State::Unavailable => return None,
            State::Idle(rings) => match rings.pop() {
                Some(ring) => return Some(ring),
                None => return Ring::new().ok(),
            },
            State::Unasked => Ring::new().ok(),
        };
        *state = match made {
            Some(_) => State::Idle(Vec::new()),
            None => State::Unavailable,
        };
        made
    }

    /// Returns a ring to the idle ones.
    fn put(&self, ring: Ring) {
        if let State::Idle(rings) = &mut *self.0.lock() {
            rings.push(ring);
        }
    }

    /// Stops using rings for good.
    fn forbid(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), State::Unavailable);
        drop(before);
    }
}

/// Reads whole files in batches.
pub(crate) struct Batches {
    files: Arc<Files>,
    rings: Rings,
}

impl Batches {
    /// Returns the reader. Without `rings`, no batch is read.
    pub(crate) fn new(files: Arc<Files>, rings: bool) -> Self {
        Self {
            files,
            rings: Rings::new(rings),
        }
    }

    /// See [`read_whole`](volary_core::FileSystem::read_whole).
    pub(crate) fn read(&self, cancel: &Cancel, files: &mut [Whole<'_>]) -> bool {
        let Some(mut ring) = self.rings.take() else {
            return false;
        };
        let mut under_way: Option<Group<'_, '_>> = None;
        for files in files.chunks_mut(DEPTH) {
            if cancel.is_set() {
                break;
            }
            let (next, flights) = self.open_group(files);
            if let Some(group) = under_way.take()
                && !group.finish(&mut ring)
            {
                self.rings.forbid();
                return true;
            }
            ring.start(flights);
            under_way = Some(next);
        }
        match under_way.is_none_or(|group| group.finish(&mut ring)) {
            true => self.rings.put(ring),
            false => self.rings.forbid(),
        }
        true
    }

    /// Opens files and takes their buffers. Files that cannot be opened are left out.
    fn open_group<'a, 'b>(&self, files: &'a mut [Whole<'b>]) -> (Group<'a, 'b>, Vec<Flight>) {
        let (mut opened, mut flights) = (Vec::new(), Vec::new());
        for file in files {
            if let Ok((FileKind::File, fd)) = self.files.descriptor(file.attr.node, Mode::Read) {
                flights.push(Flight {
                    fd,
                    bytes: std::mem::take(&mut file.bytes),
                    read: None,
                });
                opened.push(file);
            }
        }
        (Group(opened), flights)
    }
}

/// Files that are being read.
struct Group<'a, 'b>(Vec<&'a mut Whole<'b>>);

impl Group<'_, '_> {
    /// Waits until the files are read. Returns false if the ring has failed.
    fn finish(self, ring: &mut Ring) -> bool {
        let Some(flights) = ring.finish() else {
            return false;
        };
        for (file, flight) in self.0.into_iter().zip(flights) {
            file.bytes = flight.bytes;
            let now = look(&flight.fd, b"").and_then(|stat| from_statx(file.attr.node, &stat));
            file.read = flight.read.zip(now.ok());
        }
        true
    }
}

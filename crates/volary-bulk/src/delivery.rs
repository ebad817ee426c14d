//! What consumers are told.

use std::ops::ControlFlow;
use volary_core::{Attr, Error};

/// Takes what a run delivers. It may be called on several threads at the same time
/// ([`Options::workers`](crate::Options)), but the parts of one file come on one thread, in order.
///
/// The bytes are the engine's until the call returns; as long as it does not, no more than the
/// memory that is left is read.
pub trait Consumer: Sync {
    /// Returns whether a node is wanted. What is not is not told of; a directory is not entered. It is asked on a
    /// thread of the engine, while others take what was listed before.
    fn wants(&self, file: &File<'_>) -> bool {
        let _ = file;
        true
    }

    /// So many more files, with so many bytes, have been found and will come.
    fn found(&self, files: u64, bytes: u64) {
        let _ = (files, bytes);
    }

    /// Takes a part. [`Break`](ControlFlow::Break) ends the run: nothing more is delivered but what other
    /// threads are about to.
    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()>;
}

impl<F: Fn(&File<'_>, Part<'_>) -> ControlFlow<()> + Sync> Consumer for F {
    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        self(file, part)
    }
}

/// A name and what it leads to.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Which of the sources it is in, from 0.
    pub source: usize,
    /// Its path from the volume's root: begins with `/`.
    pub path: &'a [u8],
    /// Its attributes; `None` if they cannot be read.
    pub attr: Option<&'a Attr>,
    /// How it was read. Of what has no content, [`Way::Direct`].
    pub way: Way,
    /// Where in the file there are data, in order: all else is zeros. `None` if it has no holes, or
    /// it is not known.
    pub data: Option<&'a [Range]>,
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first one.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

/// What is told of a file.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// It is no file, and has no content: a directory, a symlink, a device.
    Node,
    /// All of it.
    Whole(&'a [u8]),
    /// A large file begins.
    Begin,
    /// Bytes of a large file, from `offset` on.
    Chunk {
        /// Where in the file: just after the part before.
        offset: u64,
        /// What is there.
        bytes: &'a [u8],
    },
    /// A hole of a large file: zeros that are not stored.
    Hole(Range),
    /// A large file is complete.
    End,
    /// It could not be read, or, after [`Begin`](Self::Begin), not to its end.
    Failed(&'a Error),
}

/// How a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the device, and not copied: one extent, or nothing at all.
    Direct,
    /// From the device, put together of fragments.
    Assembled,
    /// From the device, in chunks.
    Chunks,
    /// Through the session.
    Ordinary(Why),
}

/// Why a file was read through the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The user wants it so: [`Method::Vanilla`](crate::Method).
    Asked,
    /// Its volume, or a layer over it, tells of no places.
    NoPlaces,
    /// It is inline, compressed or encrypted: only the driver understands it.
    Encoded,
    /// The driver could not say where it is.
    Unmapped,
    /// The device could not read it.
    Unread,
    /// It changed while it was read.
    Changed,
}

impl Why {
    /// In a word, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::NoPlaces => "no-places",
            Self::Encoded => "encoded",
            Self::Unmapped => "unmapped",
            Self::Unread => "unread",
            Self::Changed => "changed",
        }
    }
}

impl Way {
    /// In a word, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Assembled => "assembled",
            Self::Chunks => "chunks",
            Self::Ordinary(_) => "ordinary",
        }
    }
}

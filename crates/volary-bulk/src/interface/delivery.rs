//! What a run delivers to its consumer.

use std::ops::ControlFlow;
use volary_core::{Attr, Error};

/// Takes what a run delivers. Several threads may call it at the same time
/// ([`Options::workers`](crate::Options)), but the parts of one file come on one thread, in order.
///
/// The engine owns the bytes and reuses them once the call returns. Until then, it reads on only as
/// far as the remaining memory allows.
pub trait Consumer: Sync {
    /// Returns whether the consumer wants a node. Others are not delivered, and a directory is not
    /// entered. Called on a thread of the engine, while consumers take nodes that were listed
    /// before.
    fn wants(&self, file: &File<'_>) -> bool {
        let _ = file;
        true
    }

    /// Reports how many more files, with how many bytes, have been found and will come.
    fn found(&self, files: u64, bytes: u64) {
        let _ = (files, bytes);
    }

    /// Takes a part. [`Break`](ControlFlow::Break) ends the run. Nothing more is delivered then,
    /// except what other threads are already delivering.
    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()>;
}

impl<F: Fn(&File<'_>, Part<'_>) -> ControlFlow<()> + Sync> Consumer for F {
    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        self(file, part)
    }
}

/// A name and the node it leads to.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// The index of its source, from 0.
    pub source: usize,
    /// Its path from the volume's root: begins with `/`.
    pub path: &'a [u8],
    /// Its attributes; `None` if they cannot be read.
    pub attr: Option<&'a Attr>,
    /// How it was read; [`Way::Direct`] for nodes without content.
    pub way: Way,
    /// The ranges of the file that hold data, in order; all else is zeros. `None` if the file has
    /// no holes, or they are unknown.
    pub data: Option<&'a [Range]>,
}

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
}

/// A part of a file's delivery.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// The node is no regular file and has no content: a directory, a symlink, a device.
    Node,
    /// The whole content.
    Whole(&'a [u8]),
    /// A large file begins.
    Begin,
    /// Bytes of a large file, from `offset` on.
    Chunk {
        /// Offset in the file, just after the previous part.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A hole of a large file: zeros that are not stored.
    Hole(Range),
    /// A large file is complete.
    End,
    /// The file could not be read or, after [`Begin`](Self::Begin), not to its end.
    Failed(&'a Error),
}

/// How a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the device, without a copy: one extent, or an empty file.
    Direct,
    /// From the device, assembled from fragments.
    Assembled,
    /// From the device, in chunks.
    Chunks,
    /// Through the session.
    Ordinary(Why),
}

/// Why a file was read through the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The user chose it: [`Method::Vanilla`](crate::Method).
    Asked,
    /// The volume, or a layer over it, does not report extents.
    NoPlaces,
    /// The file is inline, compressed or encrypted: only the driver understands it.
    Encoded,
    /// The driver could not tell where the file lies.
    Unmapped,
    /// The device failed to read the file.
    Unread,
    /// The file changed while it was read.
    Changed,
}

impl Why {
    /// Returns the reason in a word, for programs.
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
    /// Returns the way in a word, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Assembled => "assembled",
            Self::Chunks => "chunks",
            Self::Ordinary(_) => "ordinary",
        }
    }
}

//! A run of a bulk read as an iterator.

use crate::interface::delivery::{File, Part, Range, Way};
use crate::interface::options::Options;
use crate::interface::source::Source;
use crate::interface::summary::Summary;
use crate::run::BulkFileRead;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use volary_core::{Attr, Error, Result};

/// Iterates over the parts that a run delivers. Each part is copied from the engine's memory into
/// the caller's. Dropping the iterator ends the run.
pub struct Files {
    parts: Option<Receiver<Read>>,
    run: Option<JoinHandle<Summary>>,
}

/// A part of a file; see [`Part`].
#[derive(Debug)]
pub struct Read {
    /// The index of its source, from 0.
    pub source: usize,
    /// Its path from the volume's root: begins with `/`.
    pub path: Vec<u8>,
    /// Its attributes; `None` if they cannot be read.
    pub attr: Option<Attr>,
    /// How it was read.
    pub way: Way,
    /// The delivered part.
    pub content: Content,
}

/// The content of a delivered part; see [`Part`].
#[derive(Debug)]
#[expect(missing_docs, reason = "they are those of Part")]
pub enum Content {
    Node,
    Whole(Vec<u8>),
    Begin,
    Chunk { offset: u64, bytes: Vec<u8> },
    Hole(Range),
    End,
    Failed(Error),
}

impl Files {
    /// Starts a run on its own thread. One thread delivers, whatever [`Options::workers`] says.
    ///
    /// # Errors
    /// As [`BulkFileRead::new`].
    pub fn new(options: Options, sources: Vec<Source>) -> Result<Self> {
        let run = BulkFileRead::new(Options {
            workers: 1,
            ..options
        })?;
        // The channel has no buffer: a part is handed over only when the iterator asks for it.
        let (sender, parts) = sync_channel(0);
        let run = std::thread::spawn(move || {
            let take = |file: &File<'_>, part: Part<'_>| send(&sender, file, part);
            run.run(&sources, &take)
        });
        Ok(Self {
            parts: Some(parts),
            run: Some(run),
        })
    }

    /// Ends the run, and returns what it did.
    pub fn summary(mut self) -> Summary {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Summary> {
        // Without a receiver, the run stops at the next part.
        self.parts = None;
        self.run.take()?.join().ok()
    }
}

fn send(to: &SyncSender<Read>, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
    let content = match part {
        Part::Node => Content::Node,
        Part::Whole(bytes) => Content::Whole(bytes.to_vec()),
        Part::Begin => Content::Begin,
        Part::Chunk { offset, bytes } => Content::Chunk {
            offset,
            bytes: bytes.to_vec(),
        },
        Part::Hole(range) => Content::Hole(range),
        Part::End => Content::End,
        Part::Failed(e) => Content::Failed(Error::note(e.kind(), e.to_string())),
    };
    let read = Read {
        source: file.source,
        path: file.path.to_vec(),
        attr: file.attr.copied(),
        way: file.way,
        content,
    };
    match to.send(read) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

impl Iterator for Files {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        self.parts.as_ref()?.recv().ok()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.end();
    }
}

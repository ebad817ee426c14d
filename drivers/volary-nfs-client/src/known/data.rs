//! The bytes of a file in memory: written but not yet durable on the server, or read ahead.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{Cred, Error, Kind, Result, Time};

/// The bytes of one node. The lock is never held during a call.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) state: Mutex<State>,
    /// Notified when a call has ended.
    pub(crate) turned: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// The last written bytes, which are not sent yet: a write may continue them.
    pub(crate) gathered: Option<Part>,
    /// The ranges that are being sent.
    pub(crate) sending: Vec<Range<u64>>,
    /// Bytes that the server has but may lose, in the order of their writes.
    pub(crate) unstable: Vec<Sent>,
    /// The first write that failed after it was answered.
    failed: Option<(Kind, String)>,
    pub(crate) chunks: HashMap<u64, Chunk>,
    /// The times and size of the content that the chunks are from.
    pub(crate) content: Option<(Time, Time, u64)>,
    /// Counts the times that chunks were dropped.
    pub(crate) drops: u64,
}

/// Bytes to write, and their caller.
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) cred: Cred,
}

/// Bytes that were written as UNSTABLE.
pub(crate) struct Sent {
    pub(crate) part: Part,
    /// The server's verifier at that time: if it differs now, the bytes may be lost.
    pub(crate) verifier: [u8; 8],
}

/// A piece of a file in memory, or on its way there.
#[derive(Clone)]
pub(crate) enum Chunk {
    Coming,
    Here(Arc<Piece>),
}

/// The bytes of a piece.
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// Whether the file ends after them.
    pub(crate) is_end: bool,
}

impl Part {
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.end()
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

impl State {
    /// Returns whether some written bytes have not reached the server.
    pub(crate) fn is_behind(&self) -> bool {
        self.gathered.is_some() || !self.sending.is_empty()
    }

    pub(crate) fn is_sending(&self, range: &Range<u64>) -> bool {
        let mut sending = self.sending.iter();
        sending.any(|r| r.start < range.end && range.start < r.end)
    }

    /// Remembers a failed write; only the first one counts.
    pub(crate) fn fail(&mut self, e: &Error) {
        self.failed.get_or_insert_with(|| (e.kind(), e.to_string()));
    }

    /// Returns the failure since the last call, if any.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn check_failed(&mut self) -> Result<()> {
        match self.failed.take() {
            None => Ok(()),
            Some((kind, words)) => Err(Error::note(kind, words)),
        }
    }

    /// Drops all data that was read ahead; returns the number of its bytes.
    pub(crate) fn drop_chunks(&mut self) -> usize {
        self.drops += 1;
        self.content = None;
        self.chunks.drain().map(|(_, chunk)| chunk.len()).sum()
    }
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Coming => 0,
            Self::Here(piece) => piece.bytes.len(),
        }
    }
}

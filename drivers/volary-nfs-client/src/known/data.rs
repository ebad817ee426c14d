//! A file's bytes that are here: written and not yet at the server for good, or
//! read ahead.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{Cred, Error, Kind, Result, Time};

/// The bytes of one node. The lock is never held over a call.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) state: Mutex<State>,
    /// A call has ended.
    pub(crate) turned: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// What was written last and is not sent: it may go on.
    pub(crate) gathered: Option<Part>,
    /// What is being sent.
    pub(crate) sending: Vec<Range<u64>>,
    /// What the server has, but may lose; in the order in which it was written.
    pub(crate) unstable: Vec<Sent>,
    /// A write that failed after it was answered.
    failed: Option<(Kind, String)>,
    pub(crate) chunks: HashMap<u64, Chunk>,
    /// Of which content the chunks are: times and size.
    pub(crate) content: Option<(Time, Time, u64)>,
    /// Counts the times that chunks were dropped.
    pub(crate) drops: u64,
}

/// Bytes to write, and on whose behalf.
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) cred: Cred,
}

/// Bytes that were written unstably.
pub(crate) struct Sent {
    pub(crate) part: Part,
    /// The server's verifier then: another one now, and they may be lost.
    pub(crate) verifier: [u8; 8],
}

/// A piece of a file, by its number.
#[derive(Clone)]
pub(crate) enum Chunk {
    Coming,
    Here(Arc<Piece>),
}

/// What was read of it.
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// The file ends here.
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
    /// Returns whether the server lacks bytes that are here.
    pub(crate) fn is_behind(&self) -> bool {
        self.gathered.is_some() || !self.sending.is_empty()
    }

    pub(crate) fn is_sending(&self, range: &Range<u64>) -> bool {
        let mut sending = self.sending.iter();
        sending.any(|r| r.start < range.end && range.start < r.end)
    }

    /// Remembers that a write failed: the first one counts.
    pub(crate) fn fail(&mut self, e: &Error) {
        self.failed.get_or_insert_with(|| (e.kind(), e.to_string()));
    }

    /// What failed since it was last asked.
    ///
    /// # Errors
    /// That.
    pub(crate) fn check_failed(&mut self) -> Result<()> {
        match self.failed.take() {
            None => Ok(()),
            Some((kind, words)) => Err(Error::note(kind, words)),
        }
    }

    /// Forgets what was read ahead; gives the number of its bytes.
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

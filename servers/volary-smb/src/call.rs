//! [`Call`]: one request on its way from the connection to what answers it.
//!
//! The connection has checked the message's signature or seal, its credits,
//! session and tree, and `StructureSize` and length of the fixed part are still
//! to be checked by the one who answers. Offsets in requests count from the
//! header: from the beginning of [`Call::message`].

use crate::answer::{Failure, Related};
use crate::conn::{Conn, Logon, Tree, Wait};
use crate::wire::cursor::part;
use crate::wire::{Command, FileId, Status};
use std::sync::Arc;

/// Entries that are looked at while the client waits; for more, it is told that this takes time.
const AT_ONCE: usize = 4096;

/// One request.
pub(crate) struct Call<'a> {
    /// From the header to the message's end.
    pub(crate) message: &'a [u8],
    /// What comes after the header.
    pub(crate) body: &'a [u8],
    pub(crate) conn: &'a Arc<Conn>,
    pub(crate) logon: &'a Arc<Logon>,
    pub(crate) tree: &'a Arc<Tree>,
    pub(crate) related: &'a mut Related,
    pub(crate) wait: &'a Arc<Wait>,
    pub(crate) command: Command,
    /// The client says that it may have asked for this before (dialects from 3.0 on).
    pub(crate) replays: bool,
    /// How often the client lost its connection before this request (dialects from 3.0 on).
    pub(crate) sequence: Option<u16>,
}

impl<'a> Call<'a> {
    /// The part of the message that a request points to, `offset` bytes from
    /// its header.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` if it does not lie within.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Result<&'a [u8], Failure> {
        Ok(part(self.message, offset, len)?)
    }

    /// The file that a request names: in a related request, [`FileId::PREVIOUS`]
    /// is the one of the request before. Remembers it for the next.
    ///
    /// # Errors
    /// What the request before failed with; `INVALID_PARAMETER` if it had no
    /// file.
    pub(crate) fn file_id(&mut self, named: FileId) -> Result<FileId, Failure> {
        self.related.resolve(named)
    }

    /// Whether the client still waits for what a long loop is after: to be asked in each turn.
    ///
    /// # Errors
    /// `CANCELLED` if it has cancelled the request or is gone.
    pub(crate) fn check_wanted(&self) -> Result<(), Failure> {
        if self.wait.cancel().is_set() || self.conn.is_closed() {
            return Err(Status::CANCELLED.into());
        }
        Ok(())
    }

    /// The same for a loop that has looked at so many entries of directories: once they are many, it
    /// lets the connection go on beside it.
    ///
    /// # Errors
    /// `CANCELLED`.
    pub(crate) fn check_search(&self, looked_at: usize) -> Result<(), Failure> {
        if looked_at >= AT_ONCE {
            self.wait.pend();
        }
        self.check_wanted()
    }

    /// `len` bytes for a reply, of unspecified content: the caller overwrites them or
    /// cuts them off. Given back when the reply is sent.
    pub(crate) fn buffer(&self, len: usize) -> Vec<u8> {
        self.conn.buffers.take(len)
    }
}

//! [`Call`]: one request on its way from the connection to what answers it.
//!
//! The connection has checked the message's signature or seal, its credits,
//! session and tree, and `StructureSize` and length of the fixed part are still
//! to be checked by the one who answers. Offsets in requests count from the
//! header: from the beginning of [`Call::message`].

use crate::conn::{Conn, Logon, Tree, Wait};
use crate::wire::cursor::part;
use crate::wire::{Command, Out, Short, Status};
use std::sync::Arc;

/// Entries that are looked at while the client waits; for more, it is told that this takes time.
const AT_ONCE: usize = 4096;

/// What a request is answered with: the reply's body, from its `StructureSize` on.
pub(crate) type Answer<T = Vec<u8>> = Result<T, Failure>;

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

/// How an open is named on the wire (`SMB2_FILEID`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) persistent: u64,
    pub(crate) volatile: u64,
}

impl FileId {
    /// Stands for the file of the request before, in a related request.
    pub(crate) const PREVIOUS: Self = Self {
        persistent: u64::MAX,
        volatile: u64::MAX,
    };
}

/// What one request of a compound hands to the related one after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Related {
    /// The file that the request before opened or named. `create` sets it.
    pub(crate) file: Option<FileId>,
    /// What the request before failed with, if it failed.
    pub(crate) failed: Option<Status>,
    /// Whether this request is related to the one before.
    pub(crate) is_related: bool,
}

impl Related {
    /// See [`Call::file_id`].
    pub(crate) fn resolve(&mut self, named: FileId) -> Result<FileId, Failure> {
        let id = if named == FileId::PREVIOUS && self.is_related {
            let missing = self.failed.unwrap_or(Status::INVALID_PARAMETER);
            self.file.ok_or(missing)?
        } else {
            named
        };
        self.file = Some(id);
        Ok(id)
    }
}

/// A request that is not answered with success and an ordinary body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// The reply's whole body, if it is not the plain error response
    /// (`BUFFER_OVERFLOW` with data, an error with contexts, …).
    pub(crate) body: Option<Vec<u8>>,
}

impl Failure {
    /// A status and a reply's whole body.
    pub(crate) fn with_body(status: Status, body: Vec<u8>) -> Self {
        Self {
            status,
            body: Some(body),
        }
    }

    /// An error response with `data` as its `ErrorData` (MS-SMB2 2.2.2), as
    /// `contexts` error contexts (0 before 3.1.1).
    pub(crate) fn with_data(status: Status, contexts: u8, data: &[u8]) -> Self {
        Self::with_body(status, error_body(contexts, data))
    }

    /// The reply's body.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body.unwrap_or_else(|| error_body(0, &[]))
    }
}

fn error_body(contexts: u8, data: &[u8]) -> Vec<u8> {
    let mut out = Out::with_capacity(9);
    out.u16(9).u8(contexts).u8(0);
    out.u32(crate::wire::out::len32(data.len()));
    if data.is_empty() {
        out.u8(0);
    } else {
        out.bytes(data);
    }
    out.done()
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, body: None }
    }
}

impl From<Short> for Failure {
    fn from(_: Short) -> Self {
        Status::INVALID_PARAMETER.into()
    }
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

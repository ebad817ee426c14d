//! [`Call`]: a request, as the connection passes it to its handler.
//!
//! The connection has checked the message's signature or seal, its credits, session and tree. The
//! handler must check `StructureSize` and the length of the fixed part. Offsets in requests are
//! relative to the header, which is the start of [`Call::message`].

use super::open::{File, Tree};
use crate::answer::{Failure, Related};
use crate::client::{Link, Logon, Wait};
use crate::wire::cursor::part;
use crate::wire::{Command, FileId, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_session::Session;

/// Entries that are visited while the client waits. For more, it is told that this takes time.
const AT_ONCE: usize = 4096;

/// One request.
pub(crate) struct Call<'a> {
    /// The message, from the header to its end.
    pub(crate) message: &'a [u8],
    /// The part after the header.
    pub(crate) body: &'a [u8],
    pub(crate) link: &'a Arc<Link>,
    pub(crate) logon: &'a Arc<Logon>,
    pub(crate) tree: &'a Arc<Tree>,
    /// Returns all of the session's trees of volumes.
    pub(crate) trees: &'a dyn Fn() -> Vec<Arc<Tree>>,
    pub(crate) related: &'a mut Related,
    pub(crate) wait: &'a Arc<Wait>,
    pub(crate) command: Command,
    /// The client says that this may repeat an earlier request (dialects from 3.0 on).
    pub(crate) replays: bool,
    /// How often the client had lost its connection before this request (dialects from 3.0 on).
    pub(crate) sequence: Option<u16>,
}

impl<'a> Call<'a> {
    /// Returns the part of the message that a request points to, `offset` bytes from
    /// its header.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` if it does not lie within.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Result<&'a [u8], Failure> {
        Ok(part(self.message, offset, len)?)
    }

    /// Returns the file that a request names.
    ///
    /// # Errors
    /// `FILE_CLOSED`; in a related request, the failure of the previous one; `FILE_NOT_AVAILABLE`
    /// for a change that the client requested before it lost a connection (MS-SMB2 3.3.5.2.10).
    pub(crate) fn named(&mut self, id: FileId) -> Result<Arc<File>, Failure> {
        let id = self.related.resolve(id)?;
        let file = self.tree.files.get(id).ok_or(Status::FILE_CLOSED)?;
        file.is_fresh.store(false, Ordering::Relaxed);
        let changes = matches!(
            self.command,
            Command::Write | Command::SetInfo | Command::Ioctl
        );
        if self.sequence.is_some_and(|now| !file.is_current(now)) && changes {
            return Err(Status::FILE_NOT_AVAILABLE.into());
        }
        Ok(file)
    }

    /// Returns the tree's session for a request that may have to wait. In that case, the client is
    /// told so, and can cancel the request.
    pub(crate) fn waiting(&self) -> Session {
        let wait = Arc::clone(self.wait);
        let cancel = Arc::clone(wait.cancel());
        let session = self.tree.session.clone().with_cancel(cancel);
        session.with_wait_hook(Arc::new(move || wait.pend()))
    }

    /// Fails if the client no longer waits for the result. Long loops call this in each iteration.
    ///
    /// # Errors
    /// `CANCELLED` if it has cancelled the request or is gone.
    pub(crate) fn check_wanted(&self) -> Result<(), Failure> {
        if self.wait.cancel().is_set() || self.link.is_closed() {
            return Err(Status::CANCELLED.into());
        }
        Ok(())
    }

    /// Calls [`check_wanted`](Self::check_wanted) for a loop that has visited this many directory
    /// entries. Once they are many, other requests of the connection may run in parallel.
    ///
    /// # Errors
    /// `CANCELLED`.
    pub(crate) fn check_search(&self, looked_at: usize) -> Result<(), Failure> {
        if looked_at >= AT_ONCE {
            self.wait.pend();
        }
        self.check_wanted()
    }

    /// Returns `len` bytes for a reply, of unspecified content. The caller must overwrite them or
    /// cut them off. They are reused after the reply is sent.
    pub(crate) fn buffer(&self, len: usize) -> Vec<u8> {
        self.link.buffers().take(len)
    }
}

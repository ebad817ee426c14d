//! [`Call`]: one request on its way from the connection to what answers it.
//!
//! The connection has checked the message's signature or seal, its credits,
//! session and tree, and `StructureSize` and length of the fixed part are still
//! to be checked by the one who answers. Offsets in requests count from the
//! header: from the beginning of [`Call::message`].

use super::open::{File, Tree};
use crate::answer::{Failure, Related};
use crate::client::{Link, Logon, Wait};
use crate::wire::cursor::part;
use crate::wire::{Command, FileId, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_session::Session;

/// Entries that are looked at while the client waits; for more, it is told that this takes time.
const AT_ONCE: usize = 4096;

/// One request.
pub(crate) struct Call<'a> {
    /// From the header to the message's end.
    pub(crate) message: &'a [u8],
    /// What comes after the header.
    pub(crate) body: &'a [u8],
    pub(crate) link: &'a Arc<Link>,
    pub(crate) logon: &'a Arc<Logon>,
    pub(crate) tree: &'a Arc<Tree>,
    /// All trees of volumes that the session is connected to.
    pub(crate) trees: &'a dyn Fn() -> Vec<Arc<Tree>>,
    pub(crate) related: &'a mut Related,
    pub(crate) wait: &'a Arc<Wait>,
    pub(crate) command: Command,
    /// The client says that it may have asked for this before (dialects from 3.0 on).
    pub(crate) replays: bool,
    /// How often the client lost its connection before this request (dialects from 3.0 on).
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
    /// `FILE_CLOSED`; in a related request, what the one before failed with; `FILE_NOT_AVAILABLE` for a
    /// change that the client asked for before it lost a connection (MS-SMB2 3.3.5.2.10).
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

    /// Returns the tree's session for a request that may have to wait: the client is told so when it does, and
    /// can cancel it.
    pub(crate) fn waiting(&self) -> Session {
        let wait = Arc::clone(self.wait);
        let cancel = Arc::clone(wait.cancel());
        let session = self.tree.session.clone().with_cancel(cancel);
        session.with_wait_hook(Arc::new(move || wait.pend()))
    }

    /// Fails if the client no longer waits for the result. Long loops call it in each turn.
    ///
    /// # Errors
    /// `CANCELLED` if it has cancelled the request or is gone.
    pub(crate) fn check_wanted(&self) -> Result<(), Failure> {
        if self.wait.cancel().is_set() || self.link.is_closed() {
            return Err(Status::CANCELLED.into());
        }
        Ok(())
    }

    /// Calls [`check_wanted`](Self::check_wanted), for a loop that has looked at so many entries of directories. Once they
    /// are many, it lets the connection's other requests run beside it.
    ///
    /// # Errors
    /// `CANCELLED`.
    pub(crate) fn check_search(&self, looked_at: usize) -> Result<(), Failure> {
        if looked_at >= AT_ONCE {
            self.wait.pend();
        }
        self.check_wanted()
    }

    /// Returns `len` bytes for a reply, of unspecified content: the caller overwrites them or
    /// cuts them off. They are given back when the reply is sent.
    pub(crate) fn buffer(&self, len: usize) -> Vec<u8> {
        self.link.buffers().take(len)
    }
}

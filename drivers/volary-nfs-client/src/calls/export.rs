//! NFS calls on the export, and the caller on whose behalf they are made.

use crate::fail;
use crate::known::attr_cache::tick;
use crate::known::node::Node;
use crate::server::peer::{Call, Done, Peer};
use crate::timer;
use crate::wire::proto::{Fattr, Wcc, error_of, procedure, status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volary_core::{Attr, Cancel, Cred, Kind, Result};
use volary_rpc::numbers::{NFS, NULL};
use volary_rpc::{Decoded, Input, Output};

/// The first and the longest delay before a call is repeated that the server asks to make later.
const LATER: Duration = Duration::from_millis(100);
const LATER_MAX: Duration = Duration::from_secs(2);

/// The export, as the target of calls.
pub(crate) struct Export {
    peer: Arc<Peer>,
    /// How long a call may take, including the repetitions that the server asks for.
    timeout: Duration,
    read_only: bool,
    is_detached: AtomicBool,
}

/// The caller on whose behalf a call is made.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) cred: &'a Cred,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl<'a> Who<'a> {
    /// Returns a caller that nobody can cancel, for calls in the background.
    pub(crate) fn behind(cred: &'a Cred) -> Self {
        Self { cred, cancel: None }
    }
}

impl Export {
    pub(crate) fn new(peer: Arc<Peer>, timeout: Duration, read_only: bool) -> Self {
        Self {
            peer,
            timeout,
            read_only,
            is_detached: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Acquire)
    }

    /// Marks the export as detached. Returns whether it was before.
    pub(crate) fn detach(&self) -> bool {
        self.is_detached.swap(true, Ordering::AcqRel)
    }

    /// Closes all connections.
    pub(crate) fn end(&self) {
        self.peer.end();
    }

    /// # Errors
    /// `Stale` once the export is detached.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_detached() {
            Err(Kind::Stale.into())
        } else {
            Ok(())
        }
    }

    /// # Errors
    /// `ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check()?;
        if self.read_only {
            Err(Kind::ReadOnly.into())
        } else {
            Ok(())
        }
    }

    /// Returns how many connections there have been; see [`Peer::connections`].
    pub(crate) fn connections(&self) -> u32 {
        self.peer.connections()
    }

    /// Waits for this time, or until the export is detached.
    pub(crate) fn rest(&self, time: Duration) {
        self.peer.rest(time);
    }

    /// Returns whether the server answers.
    pub(crate) fn answers(&self) -> bool {
        self.peer.call(&Call::plain(NFS, NULL), |_| ()).is_ok()
    }

    /// Calls a procedure of NFS. Returns the status and the whole reply.
    pub(crate) fn nfs(
        &self,
        who: Who<'_>,
        procedure: u32,
        write: impl Fn(&mut Output),
    ) -> Result<(u32, Done)> {
        let call = Call {
            program: NFS,
            procedure,
            cred: Some(who.cred),
            cancel: who.cancel,
        };
        let until = timer::now() + self.timeout;
        let mut rest = LATER;
        loop {
            let done = self.peer.call(&call, &write)?;
            let status = done.results().u32().map_err(fail::garbage)?;
            if status != status::JUKEBOX || timer::now() + rest >= until {
                return Ok((status, done));
            }
            if who.cancel.is_some_and(Cancel::is_set) {
                return Err(Kind::Interrupted.into());
            }
            self.peer.rest(rest);
            rest = (rest * 2).min(LATER_MAX);
        }
    }

    /// Makes a call that changes nothing; `read` decodes the results of a success.
    pub(crate) fn ask<T>(
        &self,
        who: Who<'_>,
        procedure: u32,
        write: impl Fn(&mut Output),
        read: impl FnOnce(&mut Input<'_>) -> Decoded<T>,
    ) -> Result<T> {
        let (status, done) = self.nfs(who, procedure, write)?;
        let mut input = after_status(&done);
        if status != status::OK {
            return Err(error_of(status));
        }
        read(&mut input).map_err(fail::garbage)
    }

    /// Calls GETATTR.
    pub(crate) fn fetch_attr(&self, who: Who<'_>, node: &Node) -> Result<Attr> {
        let asked = tick();
        let put = |out: &mut Output| node.fh.write(out);
        let attr = self.ask(who, procedure::GETATTR, put, Fattr::read);
        let attr = attr.inspect_err(|_| node.expire())?;
        node.answer(&attr, asked)
    }

    /// Makes a call that changes one node, and whose reply has a status and `wcc_data`.
    pub(crate) fn change(
        &self,
        who: Who<'_>,
        procedure: u32,
        node: &Node,
        write: impl Fn(&mut Output),
    ) -> Result<Changed> {
        let changing = node.begin_change();
        let (status, done) = self.nfs(who, procedure, write)?;
        let wcc = Wcc::read(&mut after_status(&done)).map_err(fail::garbage)?;
        changing.end(&wcc)?;
        Ok(Changed {
            status,
            is_resent: done.is_resent,
        })
    }

    /// Calls COMMIT for all of a file. Returns the write verifier, which changes when the server
    /// restarts.
    pub(crate) fn commit(&self, who: Who<'_>, node: &Node) -> Result<[u8; 8]> {
        let changing = node.begin_change();
        let put = |out: &mut Output| {
            node.fh.write(out);
            out.u64(0);
            out.u32(0);
        };
        let (status, done) = self.nfs(who, procedure::COMMIT, put)?;
        let mut input = after_status(&done);
        changing.end(&Wcc::read(&mut input).map_err(fail::garbage)?)?;
        if status != status::OK {
            return Err(error_of(status));
        }
        input.array().map_err(fail::garbage)
    }
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    status: u32,
    is_resent: bool,
}

impl Changed {
    /// # Errors
    /// The error for the status.
    pub(crate) fn done(self) -> Result<()> {
        match self.status {
            status::OK => Ok(()),
            status => Err(error_of(status)),
        }
    }

    /// Checks the outcome of a removal: if the call was sent again, it may have succeeded the first
    /// time.
    pub(crate) fn removed(self) -> Result<()> {
        if self.is_resent && self.status == status::NOENT {
            return Ok(());
        }
        self.done()
    }
}

/// Returns the results behind the status.
pub(crate) fn after_status(done: &Done) -> Input<'_> {
    let mut input = done.results();
    // It decodes, since it was read before.
    let _ = input.u32();
    input
}

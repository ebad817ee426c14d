//! NLM version 4 (RFC 1813, appendix II; X/Open XNFS, chapter 10): its structures, numbers and calls.

use crate::calls::export::Who;
use crate::fail;
use crate::known::node::Node;
use crate::server::peer::{Call, Peer};
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Error, Kind, Result};
use volary_rpc::numbers::NLM;
use volary_rpc::{Decoded, Input, Output};

const TEST: u32 = 1;
const LOCK: u32 = 2;
const UNLOCK: u32 = 4;

/// `nlm4_stats`.
pub(crate) const GRANTED: u32 = 0;
const DENIED: u32 = 1;
pub(crate) const DENIED_GRACE_PERIOD: u32 = 4;

/// `MAXNETOBJ_SZ`.
const OBJECT_MAX: usize = 1024;
/// The greatest offset that all servers support.
pub(crate) const END: u64 = i64::MAX as u64;

/// An `nlm4_lock`, without its client.
pub(crate) struct Range {
    pub(crate) svid: u32,
    offset: u64,
    /// 0 for no end.
    len: u64,
}

impl Range {
    pub(crate) fn new(svid: u32, offset: u64, len: u64) -> Self {
        let to_end = offset.saturating_add(len) > END;
        let len = if to_end { 0 } else { len };
        Self { svid, offset, len }
    }

    /// Returns the range from the first byte to the last.
    pub(crate) fn between(svid: u32, first: u64, last: u64) -> Self {
        Self::new(svid, first, (last - first).saturating_add(1))
    }

    /// Returns the first and the last byte.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let last = match self.len {
            0 => END,
            len => self.offset + (len - 1),
        };
        (self.offset, last)
    }
}

/// The lock manager of a server.
#[derive(Clone)]
pub(crate) struct Nlm {
    peer: Arc<Peer>,
    whose: Arc<Whose>,
}

/// Whose locks an attachment takes.
pub(crate) struct Whose {
    /// The name of this host, which may have other attachments.
    machine: Arc<[u8]>,
    /// A random number, which tells this attachment from others.
    attachment: u64,
}

impl Whose {
    /// # Errors
    /// `Io` if the host gives no random numbers.
    pub(crate) fn new(machine: Arc<[u8]>) -> Result<Self> {
        let attachment = getrandom::u64().map_err(|e| fail::io(format!("random numbers: {e}")))?;
        Ok(Self {
            machine,
            attachment,
        })
    }
}

impl Nlm {
    pub(crate) fn new(peer: Arc<Peer>, whose: Whose) -> Self {
        Self {
            peer,
            whose: Arc::new(whose),
        }
    }

    /// Returns the number that comes before those of this attachment's lock owners.
    pub(crate) fn before_owners(&self) -> u32 {
        // The lower half of a random number is one too.
        self.whose.attachment as u32
    }

    /// Closes all connections.
    pub(crate) fn end(&self) {
        self.peer.end();
    }

    /// Waits for this time, or until the connections are closed.
    pub(crate) fn rest(&self, time: Duration) {
        self.peer.rest(time);
    }

    /// Calls TEST. Returns the status.
    pub(crate) fn test(
        &self,
        who: Who<'_>,
        node: &Node,
        range: &Range,
        exclusive: bool,
    ) -> Result<u32> {
        self.call(who, TEST, |out| {
            out.bool(exclusive);
            self.put(out, node, range);
        })
    }

    /// Calls LOCK. Returns the status.
    pub(crate) fn lock(
        &self,
        who: Who<'_>,
        node: &Node,
        range: &Range,
        exclusive: bool,
        reclaims: bool,
    ) -> Result<u32> {
        self.call(who, LOCK, |out| {
            out.bool(false);
            out.bool(exclusive);
            self.put(out, node, range);
            out.bool(reclaims);
            // The state number that NSM would give us.
            out.u32(1);
        })
    }

    /// Calls UNLOCK. Returns the status.
    pub(crate) fn unlock(&self, who: Who<'_>, node: &Node, range: &Range) -> Result<u32> {
        self.call(who, UNLOCK, |out| self.put(out, node, range))
    }

    fn put(&self, out: &mut Output, node: &Node, range: &Range) {
        let Whose {
            machine,
            attachment,
        } = &*self.whose;
        out.opaque(machine);
        node.fh.write(out);
        let mut name = format!("{}-{attachment:016x}@", range.svid).into_bytes();
        name.extend_from_slice(machine);
        out.opaque(&name);
        out.u32(range.svid);
        out.u64(range.offset);
        out.u64(range.len);
    }

    fn call(&self, who: Who<'_>, procedure: u32, write: impl FnOnce(&mut Output)) -> Result<u32> {
        let call = Call {
            program: NLM,
            procedure,
            cred: Some(who.cred),
            cancel: who.cancel,
        };
        let done = self.peer.call(&call, |out| {
            out.opaque(b"volary");
            write(out);
        })?;
        let read = |mut input: Input<'_>| -> Decoded<u32> {
            input.opaque(OBJECT_MAX)?;
            input.u32()
        };
        read(done.results()).map_err(fail::garbage)
    }
}

/// Returns the error for a status of NLM other than GRANTED.
pub(crate) fn refusal(status: u32) -> Error {
    match status {
        DENIED | 3 => Kind::Locked.into(),
        2 => Error::note(Kind::NoSpace, "the server has no room for more locks"),
        DENIED_GRACE_PERIOD => Error::note(
            Kind::Busy,
            "the server was restarted and gives no new locks yet",
        ),
        5 => Kind::Deadlock.into(),
        6 => Kind::ReadOnly.into(),
        7 => Kind::Stale.into(),
        8 => Kind::TooBig.into(),
        9 => fail::io("the server's lock manager failed"),
        _ => fail::nonsense("status of NLM", status, "one of nlm4_stats"),
    }
}

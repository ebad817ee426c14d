//! Dispatches a call by program, version and procedure.

use super::programs::Programs;
use super::{mount, portmap};
use crate::kept::dupes::{CallId, Seen};
use crate::rpc::call::Call;
use crate::rpc::message::{self, Auth, Head, NoCall, Refusal};
use crate::rpc::owner::Owner;
use crate::{nfs, nlm};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tracing::error;
use volary_rpc::{Input, Output};

/// Where a call came from, and where it arrived.
#[derive(Clone, Debug)]
pub struct Way {
    /// The client.
    pub peer: SocketAddr,
    /// The server's end.
    pub local: SocketAddr,
    /// Only the portmapper and NSM answer on this port.
    pub only_portmap: bool,
    /// The owner of the client's socket, on whose authority the calls are made.
    pub owner: Arc<Owner>,
}

/// The result of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The reply is written; the call was accepted.
    Accepted,
    /// The reply is written; it refuses the call.
    Refused,
    /// No reply: the call is already in progress.
    Nothing,
    /// It is not a call: the connection sends garbage.
    Garbage,
}

impl Programs {
    /// Executes the call in a record, and appends the reply to `out`, which may be empty.
    pub fn answer(self: &Arc<Self>, way: &Way, record: &[u8], out: &mut Output) -> Answer {
        let mut input = Input::new(record);
        let head = match Head::read(&mut input) {
            Ok(head) => head,
            Err(NoCall::Garbage) => return Answer::Garbage,
            Err(NoCall::Version { xid }) => {
                message::refuse_version(out, xid);
                return Answer::Refused;
            }
        };
        let party = way.owner.party(way.peer.ip());
        let id = is_done_once(&head).then(|| CallId::new(party, way.peer, head.xid, record));
        if let Some(id) = id {
            match self.dupes().look(id) {
                Seen::New => {}
                Seen::Working => return Answer::Nothing,
                Seen::Answer(bytes) => {
                    out.raw(&bytes);
                    return Answer::Accepted;
                }
            }
        }
        let begin = out.len();
        let answer = self.answer_new(way, &head, &mut input, out);
        match (id, &answer) {
            (Some(id), Answer::Accepted) => self
                .dupes()
                .answered(id, out.bytes().get(begin..).unwrap_or_default()),
            // It did nothing, and another such call is refused as well.
            (Some(id), _) => self.dupes().forget(id),
            (None, _) => {}
        }
        answer
    }

    fn answer_new(
        self: &Arc<Self>,
        way: &Way,
        head: &Head,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Answer {
        let begin = out.len();
        message::accept(out, head.xid);
        // The last line of defence: a panic costs one reply, not the server.
        let done = catch_unwind(AssertUnwindSafe(|| self.dispatch(way, head, input, out)));
        let done = done.unwrap_or_else(|_| {
            self.note_defect();
            error!(target: "NFS", address = %way.peer.ip(), "caught panic");
            Err(Refusal::Defect)
        });
        match done {
            Ok(()) => Answer::Accepted,
            Err(why) => {
                out.truncate(begin);
                message::refuse(out, head.xid, why);
                Answer::Refused
            }
        }
    }

    fn dispatch(
        self: &Arc<Self>,
        way: &Way,
        head: &Head,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        let versions = match head.program {
            portmap::PROGRAM => (portmap::LOW, portmap::HIGH),
            nlm::nsm::PROGRAM => (nlm::nsm::VERSION, nlm::nsm::VERSION),
            _ if way.only_portmap => return Err(Refusal::NoProgram),
            nfs::PROGRAM => (nfs::VERSION, nfs::VERSION),
            mount::PROGRAM => (mount::VERSION, mount::VERSION),
            nlm::PROGRAM => (nlm::VERSION, nlm::VERSION),
            _ => return Err(Refusal::NoProgram),
        };
        let (low, high) = versions;
        if !(low..=high).contains(&head.version) {
            return Err(Refusal::NoVersion { low, high });
        }
        match head.auth {
            Auth::Bad => return Err(Refusal::BadCredentials),
            // The NULL procedure answers anybody.
            Auth::Unknown if head.procedure != 0 => return Err(Refusal::OtherFlavor),
            _ => {}
        }
        let call = Call {
            peer: way.peer,
            local: way.local,
            procedure: head.procedure,
            caller: way.owner.caller(&head.auth),
            party: way.owner.party(way.peer.ip()),
        };
        match head.program {
            portmap::PROGRAM => self.portmap(&call, head.version, input, out),
            nlm::nsm::PROGRAM => self.nlm().nsm(&call, input, out),
            nfs::PROGRAM => nfs::answer(self.exports(), &call, input, out),
            mount::PROGRAM => self.mount(&call, input, out),
            _ => self.nlm().answer(&call, input, out),
        }
    }
}

/// Returns whether a retransmitted call must not be executed again: SETATTR, and all that make,
/// remove or rename.
fn is_done_once(head: &Head) -> bool {
    head.program == nfs::PROGRAM && matches!(head.procedure, 2 | 8..=15)
}

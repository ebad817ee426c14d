//! From a call to its answer: which program, version and procedure.

use crate::dupes::{CallId, Dupes, Seen};
use crate::export::Export;
use crate::fh::Key;
use crate::mount::{self, Mounts};
use crate::nlm::{self, LockState, Locks, Shares};
use crate::options::{ExportOptions, ServeOptions};
use crate::owner::{Caller, Owner};
use crate::rpc::{self, Auth, Head, NoCall, Refusal};
use crate::{nfs, portmap};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::error;
use volary_rpc::{Input, Output};
use volary_session::{Grace, Party, Volume, is_this_host};

/// What there is to call, and what it keeps: everything of the server but its
/// connections.
pub struct Programs {
    exports: Vec<Export>,
    key: Key,
    mounts: Mounts,
    locks: Locks,
    shares: Shares,
    lock_state: Option<Arc<LockState>>,
    /// Keeps new locks out of all exports.
    grace: Mutex<Vec<Grace>>,
    dupes: Dupes,
    client_portmap: u16,
    /// Where NFS is served, once it is.
    port: OnceLock<u16>,
    defects: AtomicU64,
}

/// Where a call came from, and where it arrived.
#[derive(Clone, Debug)]
pub struct Way {
    /// The client.
    pub peer: SocketAddr,
    /// This end.
    pub local: SocketAddr,
    /// Only the portmapper and NSM answer here.
    pub only_portmap: bool,
    /// Whose word the calls are.
    pub owner: Arc<Owner>,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer is written; the call was accepted.
    Accepted,
    /// The answer is written; it refuses the call.
    Refused,
    /// There is nothing to say: the call is being done already.
    Nothing,
    /// It is no call: the connection is of no use.
    Garbage,
}

/// A call, apart from its arguments.
pub(crate) struct Call {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) procedure: u32,
    pub(crate) caller: Caller,
    /// Whose the locks are that it takes or ends.
    pub(crate) party: Party,
}

impl Programs {
    /// Those that serve these volumes. Names must differ.
    pub fn new(exports: Vec<(Arc<Volume>, ExportOptions)>, options: &ServeOptions) -> Arc<Self> {
        let instance = options.instance;
        let has_grace = options.locks.as_ref().is_some_and(|state| state.is_grace());
        let held = exports.iter().filter(|_| has_grace);
        let grace = held.map(|(volume, _)| volume.grace()).collect();
        let exports = exports
            .into_iter()
            .map(|(volume, how)| Export::new(volume, how, instance));
        Arc::new(Self {
            exports: exports.collect(),
            key: Key::new(&options.key),
            mounts: Mounts::default(),
            locks: Locks::default(),
            shares: Shares::default(),
            lock_state: options.locks.clone(),
            grace: Mutex::new(grace),
            dupes: Dupes::default(),
            client_portmap: options.client_portmap,
            port: OnceLock::new(),
            defects: AtomicU64::new(0),
        })
    }

    /// Answers a record: appends to `out`, which may be empty.
    pub fn answer(self: &Arc<Self>, way: &Way, record: &[u8], out: &mut Output) -> Answer {
        let mut input = Input::new(record);
        let head = match Head::read(&mut input) {
            Ok(head) => head,
            Err(NoCall::Garbage) => return Answer::Garbage,
            Err(NoCall::Version { xid }) => {
                rpc::refuse_version(out, xid);
                return Answer::Refused;
            }
        };
        let party = way.owner.party(way.peer.ip());
        let id = is_done_once(&head).then(|| CallId::new(party, way.peer, head.xid, record));
        if let Some(id) = id {
            match self.dupes.look(id) {
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
        if let Some(id) = id {
            self.dupes
                .answered(id, out.bytes().get(begin..).unwrap_or_default());
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
        rpc::accept(out, head.xid);
        // The last fence: a defect costs one answer, not the server.
        let done = catch_unwind(AssertUnwindSafe(|| self.dispatch(way, head, input, out)));
        let done = done.unwrap_or_else(|_| {
            self.defects.fetch_add(1, Ordering::Relaxed);
            error!(target: "NFS", address = %way.peer.ip(), "caught panic");
            Err(Refusal::Defect)
        });
        match done {
            Ok(()) => Answer::Accepted,
            Err(why) => {
                out.truncate(begin);
                rpc::refuse(out, head.xid, why);
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
            // Whether there is a server is told to anybody.
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
            nlm::nsm::PROGRAM => self.nsm(&call, input, out),
            nfs::PROGRAM => self.nfs(&call, input, out),
            mount::PROGRAM => self.mount(&call, input, out),
            _ => self.nlm(&call, input, out),
        }
    }

    /// A second has passed.
    pub fn tick(&self) {
        self.exports.iter().for_each(Export::sweep);
        self.is_grace();
        self.sweep_lock_state();
    }

    /// Ends locks and opens; waits a little for those who wait for locks.
    pub fn end(&self) {
        self.locks.shut();
        self.shares.shut();
        self.end_grace();
        self.exports.iter().for_each(|e| e.volume.wake_waiting());
        self.locks.wait_ended(Duration::from_secs(1));
        self.exports.iter().for_each(Export::close_all);
    }

    /// How many opens are kept for NFS, and how many files have locks.
    pub fn kept(&self) -> (usize, usize) {
        let opens = self.exports.iter().map(Export::open_count).sum();
        (opens, self.locks.file_count())
    }

    /// How many calls ended in a panic: each is a defect.
    pub fn defects(&self) -> u64 {
        self.defects.load(Ordering::Relaxed)
    }

    /// Whether any export is for this client.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        is_this_host(peer) || self.exports.iter().any(|e| e.admits(peer))
    }

    pub(crate) fn exports(&self) -> std::slice::Iter<'_, Export> {
        self.exports.iter()
    }

    pub(crate) fn export_by_id(&self, id: u32) -> Option<&Export> {
        self.exports.iter().find(|e| e.id == id)
    }

    pub(crate) fn export_by_name(&self, name: &[u8]) -> Option<&Export> {
        let mut exports = self.exports.iter();
        exports.find(|e| e.options.name.as_bytes() == name)
    }

    pub(crate) fn only_export(&self) -> Option<&Export> {
        match &*self.exports {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    pub(crate) fn lock_state(&self) -> Option<&LockState> {
        self.lock_state.as_deref()
    }

    /// Lets new locks in.
    pub(crate) fn end_grace(&self) {
        let over = std::mem::take(&mut *self.grace.lock());
        drop(over);
    }

    pub(crate) fn client_portmap(&self) -> u16 {
        self.client_portmap
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port.get().copied()
    }

    /// Says where NFS is served.
    pub(crate) fn set_port(&self, port: u16) {
        // It is said once.
        let _ = self.port.set(port);
    }
}

/// Whether a call that came twice must be done only once: SETATTR, and all that
/// make, remove or rename.
fn is_done_once(head: &Head) -> bool {
    head.program == nfs::PROGRAM && matches!(head.procedure, 2 | 8..=15)
}

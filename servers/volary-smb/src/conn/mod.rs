//! One connection: [`Conn`], from its first byte to its last.
//!
//! | module | what |
//! |---|---|
//! | `frame` | messages from the socket, within their deadlines |
//! | `proof` | signatures of long messages, while they come |
//! | `work` | the threads of a connection and whose turn it is |
//! | `window` | credits and the message ids that they allow |
//! | `compound` | a message taken apart into requests, replies put together |
//! | `dispatch` | from a request to the one who answers |
//! | `wait` | requests that are answered later, and their cancellation |
//! | `send` | replies and breaks, signed or sealed, to the socket |
//! | `negotiate`, `setup`, `logon`, `tree` | the commands that are answered here |

mod buffers;
mod compound;
mod dispatch;
mod frame;
#[cfg(feature = "fuzzing")]
mod fuzzed;
mod logon;
mod negotiate;
mod proof;
mod send;
mod setup;
mod tree;
mod wait;
mod window;
mod work;

use crate::budget::Taken;
use crate::clock::now;
use crate::config::Limits;
use crate::server::Shared;
use crate::wire::Dialect;
use buffers::Buffers;
pub(crate) use logon::Logon;
use negotiate::Negotiated;
use parking_lot::{Mutex, RwLock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use send::Sending;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::warn;
pub(crate) use tree::Tree;
use volary_core::escape_short;
use volary_session::{Guest, Party, is_this_host, socket_owner};
pub(crate) use wait::Wait;
use window::Window;
pub(crate) use work::begin;

/// Most sessions that are remembered after their end.
const ENDED_MAX: usize = 8;

/// One client's connection.
pub(crate) struct Conn {
    pub(crate) server: Arc<Shared>,
    pub(crate) buffers: Buffers,
    pub(crate) peer: IpAddr,
    party: Party,
    socket: Arc<TcpStream>,
    negotiated: OnceLock<Negotiated>,
    window: Mutex<Window>,
    /// Sessions that are set up.
    logons: RwLock<HashMap<u64, Arc<Logon>>>,
    /// Those that ended last: their clients are told so under a signature.
    ended: Mutex<VecDeque<Arc<Logon>>>,
    /// When the last of them ended, or the connection began.
    alone_since: Mutex<Instant>,
    setups: Mutex<setup::Setups>,
    waits: wait::Waits,
    frames: Mutex<frame::Frames>,
    turn: work::Turn,
    /// A logon waits on a thread of its own.
    pub(super) logon_waits: AtomicBool,
    sending: Sending,
    closed: AtomicBool,
}

impl Conn {
    pub(crate) fn new(server: Arc<Shared>, socket: TcpStream, peer: IpAddr) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        keep_alive(&socket)?;
        if peer.is_loopback() {
            send_at_once(&socket);
        }
        let told = match is_this_host(peer) {
            true => socket_owner(socket.peer_addr()?, socket.local_addr()?),
            false => Ok(None),
        };
        let limits = &server.config.limits;
        let socket = Arc::new(socket);
        let frames = frame::Frames::new(Arc::clone(&socket), limits)?;
        let sending = Sending::new(Arc::clone(&socket), limits)?;
        Ok(Self {
            buffers: Buffers::default(),
            window: Mutex::new(Window::new(limits.credits)),
            turn: work::Turn::new(limits.waiting),
            frames: Mutex::new(frames),
            server,
            peer,
            party: Party::of(peer, &told),
            socket,
            negotiated: OnceLock::new(),
            logons: RwLock::default(),
            ended: Mutex::default(),
            alone_since: Mutex::new(now()),
            setups: Mutex::default(),
            waits: wait::Waits::default(),
            logon_waits: AtomicBool::new(false),
            sending,
            closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.server.config.limits
    }

    /// The dialect that was agreed on. Before that, no request needs it.
    pub(crate) fn dialect(&self) -> Dialect {
        self.negotiated.get().map_or(Dialect::Smb202, |n| n.dialect)
    }

    /// What the client calls itself: the client half of a lease key.
    pub(crate) fn client_guid(&self) -> [u8; 16] {
        self.negotiated.get().map_or([0; 16], |n| n.client_guid)
    }

    /// The most bytes that a read, a write or a transaction of this connection
    /// may move.
    pub(crate) fn io_max(&self) -> u32 {
        self.negotiated.get().map_or(0, |n| n.io_max)
    }

    fn logon(&self, id: u64) -> Option<Arc<Logon>> {
        self.logons.read().get(&id).cloned()
    }

    /// Takes a session out of those that there are, and remembers that it has ended, in
    /// place of the oldest such if there are many.
    fn forget(&self, id: u64) {
        let mut logons = self.logons.write();
        let Some(logon) = logons.remove(&id) else {
            return;
        };
        let mut ended = self.ended.lock();
        if ended.len() >= ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back(logon);
    }

    /// A session that has ended, if it is remembered.
    fn ended(&self, id: u64) -> Option<Arc<Logon>> {
        let ended = self.ended.lock();
        ended.iter().find(|logon| logon.id == id).cloned()
    }

    /// The session of a connection that has one.
    fn only_logon(&self) -> Option<Arc<Logon>> {
        let logons = self.logons.read();
        let mut all = logons.values();
        all.next().filter(|_| all.next().is_none()).cloned()
    }

    /// What this connection takes of those that the user of a new session may have: what another
    /// session of theirs on it has taken, if there is one. `None` if they have as many.
    fn place_of(&self, logon: &Logon) -> Option<Arc<Taken>> {
        let logons = self.logons.read();
        let mut theirs = logons
            .values()
            .filter(|other| Arc::ptr_eq(&other.budget, &logon.budget));
        let has = theirs.find_map(|other| other.place.lock().clone());
        let max = self.limits().connections_per_user;
        has.or_else(|| logon.budget.connections.take(max).map(Arc::new))
    }

    /// Ends the connection: no further request is read, those that wait are
    /// sent away. The last of its threads closes what it has open.
    pub(crate) fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        // A socket that is gone already is what is wanted.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.waits.end_all();
        self.server.wake_waiting();
        self.server.guesses.wake();
        self.turn.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether the client has ended the connection, though nobody here may have noticed yet.
    pub(crate) fn has_hung_up(&self) -> bool {
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let looked = poll(&mut fds, Some(&Timespec::default()));
        self.is_closed() || looked.is_ok() && fds[0].revents().intersects(ended)
    }

    /// Logs that a user, if there is one yet, has all of something that they may have.
    pub(crate) fn log_limit(&self, limit: &'static str, user: &str) {
        let user = escape_short(user.as_bytes());
        warn!(target: "SMB", limit, user, address = %self.peer, "limit reached");
    }

    /// Logs why the connection ends, which the client did not ask for.
    pub(super) fn log_sent_away(&self, reason: &'static str) {
        warn!(target: "SMB", address = %self.peer, reason, "connection sent away");
    }
}

impl Guest for Conn {
    fn party(&self) -> Party {
        self.party
    }

    fn is_known(&self) -> bool {
        self.has_logons()
    }

    /// Whether nothing is open and nothing waits.
    fn is_idle(&self) -> bool {
        let logons = self.logons.read();
        let trees = logons.values().flat_map(|logon| logon.trees());
        self.waits.is_empty() && trees.map(|tree| tree.files.len()).all(|count| count == 0)
    }
}

/// Finds out within minutes if a silent client is gone, and with it its opens.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(socket, 4)?;
    Ok(())
}

/// Nobody shares the way to a client on this host: a congestion control that
/// measures it and paces what is sent (BBR) only makes large replies slower.
fn send_at_once(socket: &TcpStream) {
    // A system that has no other goes on with its own.
    let _ = sockopt::set_tcp_congestion(socket, "reno");
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn")
            .field("peer", &self.peer)
            .field("dialect", &self.dialect())
            .finish_non_exhaustive()
    }
}

/// See [`crate::fuzzing`].
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    pub(crate) use super::compound::take_apart as compound;
    pub(crate) use super::fuzzed::{connections, requests};
}

#[cfg(test)]
mod tests;

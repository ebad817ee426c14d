//! The options of a server, and its limits.

use crate::nlm::LockState;
use crate::rpc::owner::Database;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The options of a server, apart from its exports.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The addresses to listen on. NFS, MOUNT, NLM, NSM and the portmapper's answers are all on
    /// each of these; the program's number decides.
    pub listen: Vec<SocketAddr>,
    /// Addresses where only the portmapper and NSM answer: port 111, for clients that ask there for
    /// the port of NLM. The answer is the first port of [`listen`](Self::listen).
    pub portmap: Vec<SocketAddr>,
    /// The key that seals file handles: secret, and the same after a restart if handles are to
    /// outlive it.
    pub key: [u8; 16],
    /// A number that differs in each run, such as its start time.
    pub instance: u64,
    /// The limits.
    pub limits: Limits,
    /// The port of clients' portmappers. A client's NLM is called to tell it that it has got a
    /// lock, and its NSM to tell it of a restart.
    pub client_portmap: u16,
    /// The record that lets clients reclaim their locks after a restart. Without it, locks do not
    /// outlive the server.
    pub locks: Option<Arc<LockState>>,
    /// Called when the server ends without having been stopped;
    /// [`Server::stop`](crate::Server::stop) then says why.
    pub on_end: Option<OnEnd>,
    /// Looks up the groups of a user of this host.
    pub database: Database,
    /// The user of this host who is believed beside root: the one who runs the server.
    pub believed: u32,
}

/// A function that is called at a server's end, by the thread that ends.
#[derive(Clone)]
pub struct OnEnd(Arc<dyn Fn() + Send + Sync>);

impl OnEnd {
    /// Calls `told` once.
    pub fn new(told: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(super) fn tell(&self) {
        (self.0)();
    }
}

impl fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEnd")
    }
}

impl ServeOptions {
    /// Returns options for `listen`, with the default limits.
    pub fn new(listen: SocketAddr, key: [u8; 16], instance: u64) -> Self {
        Self {
            listen: vec![listen],
            portmap: Vec::new(),
            key,
            instance,
            limits: Limits::default(),
            client_portmap: 111,
            locks: None,
            on_end: None,
            database: Database::default(),
            believed: rustix::process::geteuid().as_raw(),
        }
    }
}

/// The limits of a server. With `c` connections and `t` threads beside the first of each, its
/// buffers take at most about `2 MiB * (c + t)` of memory.
///
/// A peer is another host (for IPv6, all addresses with the same first 64 bits), or a user of this
/// host.
///
/// | of | in all | of a peer | of a caller |
/// |---|---|---|---|
/// | connections | 64 | 16; for users of this host no other limit, but shared evenly when all are taken | |
/// | connections without an accepted call | 64, for 10 s | 16 | |
/// | bytes of a record | 1 MiB, or 64 KiB until a call was accepted | | |
/// | threads | one for each connection, and 192 | 96 of these | |
/// | opens kept for READ and WRITE | 1,024 of a volume, the oldest is closed | | |
/// | owners of locks | 8,192 | 2,048; on this host by caller only | 1,024 |
/// | locks | 1,048,576 of a volume ([`volary_session::Limits`]) | | 262,144 |
/// | locks that wait, with a thread each | 128 | 32 | |
/// | SHAREs | 4,096 | 1,024 | |
/// | machines that are told of a restart | 4,096 | 64 | |
/// | calls remembered | 2,048, the oldest of the peer with the most is forgotten | 1,024 | |
/// | CREATE EXCLUSIVE remembered | 4,096 of a volume, the same way | 2,048 | |
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. If all are taken, a new one replaces the oldest one without an
    /// accepted call, of the peer that has the most of those. If there are none, it replaces the
    /// newest one, idle if possible, of the peer that has the most.
    pub connections: usize,
    /// Connections of one peer, except users of this host.
    pub connections_of_peer: usize,
    /// Connections of one peer without an accepted call; a new one replaces the oldest of them.
    pub silent_of_peer: usize,
    /// Requests of one connection that are executed at the same time.
    pub threads: usize,
    /// Threads at a time, beside the first of each connection. Without another thread, a connection
    /// executes its calls one by one.
    pub threads_beside: usize,
    /// Such threads for one peer.
    pub threads_beside_of_peer: usize,
    /// The time from connecting to the end of the first call. Until a call was accepted, a record
    /// is at most 64 KiB.
    pub first_call: Duration,
    /// The time from the first byte of a call to its last; and for a client to accept a reply.
    pub call: Duration,
    /// The time that a connection may be idle.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            connections_of_peer: 16,
            silent_of_peer: 16,
            threads: 8,
            threads_beside: 192,
            threads_beside_of_peer: 96,
            first_call: Duration::from_secs(10),
            call: Duration::from_secs(30),
            idle: Duration::from_secs(600),
        }
    }
}

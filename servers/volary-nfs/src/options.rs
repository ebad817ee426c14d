//! What is served, to which clients, and within which limits.

use crate::nlm::LockState;
use crate::owner::Database;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use volary_core::Cred;
use volary_session::{Clients, root_squashed};

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

    pub(crate) fn tell(&self) {
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

/// How a volume is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The name: clients mount `/NAME`.
    pub name: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Which callers' ids are replaced by the anonymous ones.
    pub squash: Squash,
    /// The user of squashed callers, and of callers without credentials.
    pub anonymous: Cred,
    /// If root is squashed, groups with lower numbers than this are too, unless the kernel
    /// confirmed that the caller is in them. A directory of the host may have files of `disk` or
    /// `shadow`, whose rights are as good as root's.
    pub system_groups: u32,
    /// The clients that may mount. This host always may.
    pub clients: Vec<Clients>,
    /// Whether changes are durable before they are answered, as the protocol requires. Otherwise
    /// they are as durable as any program's on the volume, until COMMIT. Written data waits for
    /// COMMIT in both cases, unless the client wants it at once.
    pub durable: bool,
}

impl ExportOptions {
    /// Returns the usual options: writable, root squashed, for this host only.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            read_only: false,
            squash: Squash::Root,
            anonymous: Cred::new(65534, 65534),
            system_groups: 0,
            clients: Vec::new(),
            durable: true,
        }
    }
}

impl ExportOptions {
    /// Returns the credentials on the volume for a caller whose own word is all that is known.
    pub(crate) fn caller(&self, said: &Cred) -> Cred {
        let cred = self.squash.apply(said.clone(), &self.anonymous);
        let is_system = |gid: u32| gid < self.system_groups && gid != self.anonymous.gid;
        let has_any = is_system(cred.gid) || cred.groups.iter().copied().any(is_system);
        if self.squash != Squash::Root || !has_any {
            return cred;
        }
        let squash = |gid: u32| {
            if is_system(gid) {
                self.anonymous.gid
            } else {
                gid
            }
        };
        Cred {
            uid: cred.uid,
            gid: squash(cred.gid),
            groups: cred.groups.iter().copied().map(squash).collect(),
        }
    }
}

/// Which callers' user and group ids are replaced by the anonymous ones, since a client can claim
/// any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// No ids.
    None,
    /// User 0, and group 0 also as a supplementary group.
    Root,
    /// All ids.
    All,
}

impl Squash {
    /// Returns a caller's credentials on the volume.
    pub fn apply(self, cred: Cred, anonymous: &Cred) -> Cred {
        match self {
            Self::None => cred,
            Self::All => anonymous.clone(),
            Self::Root => root_squashed(&cred, anonymous),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_system_are_squashed_where_root_is() {
        let cred = |gid, groups: &[u32]| Cred {
            uid: 5,
            gid,
            groups: groups.into(),
        };
        let mut options = ExportOptions::new("x");
        assert_eq!(options.caller(&cred(6, &[27])), cred(6, &[27]));
        options.system_groups = 1000;
        assert_eq!(
            options.caller(&cred(6, &[27, 1000])),
            cred(65534, &[65534, 1000])
        );
        assert_eq!(options.caller(&cred(1001, &[1000])), cred(1001, &[1000]));
        options.squash = Squash::None;
        assert_eq!(options.caller(&cred(6, &[27])), cred(6, &[27]));
    }

    #[test]
    fn callers_are_whom_the_squash_makes_them() {
        let nobody = Cred::new(99, 98);
        let user = Cred::new(5, 6);
        assert_eq!(Squash::Root.apply(Cred::root(), &nobody), nobody);
        assert_eq!(Squash::Root.apply(user.clone(), &nobody), user);
        assert_eq!(Squash::None.apply(Cred::root(), &nobody), Cred::root());
        assert_eq!(Squash::All.apply(user, &nobody), nobody);
    }
}

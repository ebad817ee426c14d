//! What is served, to whom, and within which bounds.

use crate::nlm::LockState;
use crate::owner::Database;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use volary_core::Cred;
use volary_session::{Clients, root_squashed};

/// What a server is, apart from what it exports.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where it listens. NFS, MOUNT, NLM, NSM and the portmapper's answers are
    /// all on each of these; the program's number decides.
    pub listen: Vec<SocketAddr>,
    /// Where only the portmapper and NSM answer: port 111, for clients that ask
    /// there where NLM is. The answer is the first port of [`listen`](Self::listen).
    pub portmap: Vec<SocketAddr>,
    /// What file handles are sealed with: secret, and the same after a restart
    /// if handles are to outlive it.
    pub key: [u8; 16],
    /// Different in each run: the time at which it begins, say.
    pub instance: u64,
    /// The bounds.
    pub limits: Limits,
    /// Where the portmapper of a client is asked for its NLM, to tell it that it
    /// has got a lock that it waited for, and for its NSM, to tell it of a restart.
    pub client_portmap: u16,
    /// What lets clients claim their locks again after a restart; without, their
    /// locks do not outlive the server.
    pub locks: Option<Arc<LockState>>,
    /// Is told when the server ends that was not stopped; [`Server::stop`](crate::Server::stop)
    /// then says why.
    pub on_end: Option<OnEnd>,
    /// Who tells the groups of a user of this host.
    pub database: Database,
    /// The user of this host who is believed beside root: who runs this.
    pub believed: u32,
}

/// Who is told of a server's end, by the thread that ends.
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
    /// On `listen`, with the bounds that are usual.
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

/// The bounds of a server. With `c` connections and `t` threads beside the first of each, it takes
/// at most about `2 MiB * (c + t)` of memory for what comes and goes.
///
/// A peer is a host (of IPv6, all that begins with the same 64 bits), or a user of this host.
///
/// | of | in all | of a peer | of a caller |
/// |---|---|---|---|
/// | connections | 64 | 16; of this host no other bound, but evenly shared when there are no more | |
/// | connections of which no call was accepted | 64, for 10 s | 16 | |
/// | bytes of a record | 1 MiB, until a call was accepted 64 KiB | | |
/// | threads | one for each connection, and 192 | 96 of these | |
/// | opens kept for READ and WRITE | 1,024 of a volume, the oldest gives way | | |
/// | owners of locks | 8,192 | 2,048; of this host by caller alone | 1,024 |
/// | locks | 1,048,576 of a volume ([`volary_session::Limits`]) | | 262,144 |
/// | locks that wait, with a thread each | 128 | 32 | |
/// | SHAREs | 4,096 | 1,024 | |
/// | machines that are told of a restart | 4,096 | 64 | |
/// | calls remembered | 2,048, the oldest of who has most gives way | 1,024 | |
/// | CREATE EXCLUSIVE remembered | 4,096 of a volume, the same way | 2,048 | |
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. Where there are as many, the next takes the place of the oldest of
    /// which no call was accepted, of the peer that has most of those; or else of the newest,
    /// idle if any is, of the peer that has most.
    pub connections: usize,
    /// Of these, of one peer other than this host's users.
    pub connections_of_peer: usize,
    /// Of one peer, those of which no call was accepted; the next takes the oldest one's
    /// place.
    pub silent_of_peer: usize,
    /// Requests of one connection that are done at once.
    pub threads: usize,
    /// Threads at once, beside the first of each connection: without another, a connection does
    /// its calls one by one.
    pub threads_beside: usize,
    /// Of these, for one peer.
    pub threads_beside_of_peer: usize,
    /// From connecting to the end of the first call. Until a call was accepted, a
    /// record is at most 64 KiB.
    pub first_call: Duration,
    /// From the first byte of a call to its last; and how long a client may take
    /// to take an answer.
    pub call: Duration,
    /// Without a call.
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
    /// Clients mount `/NAME`.
    pub name: String,
    /// Refuses changes.
    pub read_only: bool,
    /// Whose word is not taken.
    pub squash: Squash,
    /// Who they are then, and who callers without credentials are.
    pub anonymous: Cred,
    /// Where root is squashed, groups below this number are as well, unless the kernel told
    /// that the caller is in them: a directory of the host has files of `disk` or `shadow`, whose
    /// rights are root's in all but name.
    pub system_groups: u32,
    /// Who may mount. This host always may.
    pub clients: Vec<Clients>,
    /// Changes are durable before they are answered, as the protocol wants it;
    /// without, they are as durable as any program's on the volume, until COMMIT.
    /// Written data waits for COMMIT either way, unless the client wants it at once.
    pub durable: bool,
}

impl ExportOptions {
    /// As most want it: for changes, root squashed, for this host only.
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
    /// Returns who a caller is on the volume of whom nothing is known but what they say.
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

/// Whose user and group ids are replaced by the anonymous ones. A client's word
/// for who calls is all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Nobody's.
    None,
    /// Those of user 0, and group 0 wherever it is named.
    Root,
    /// Everybody's.
    All,
}

impl Squash {
    /// Returns who a caller is on the volume.
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

//! What a server is told: [`Config`].

use crate::crypto::NtHash;
use crate::wire::Dialect;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Cred, Time, same_name};
use volary_session::{Clients, Volume, is_this_host};

/// What a server serves, to whom, and within which limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// What clients see as the server's name.
    pub name: String,
    /// What is served.
    pub shares: Vec<Share>,
    /// Who may log on.
    pub users: Vec<User>,
    /// Refuse messages that are neither signed nor encrypted.
    pub signing_required: bool,
    /// Refuse messages that are not encrypted (clients before 3.0 cannot).
    pub encryption_required: bool,
    /// The oldest dialect to speak.
    pub min_dialect: Dialect,
    /// The newest dialect to speak.
    pub max_dialect: Dialect,
    /// Tells the time.
    pub clock: fn() -> Time,
    /// Bounds on what clients can ask for.
    pub limits: Limits,
}

impl Config {
    /// Returns a server without shares or users: every dialect but the first, which is signed by what can
    /// be talked down to less; signing required.
    pub fn new(name: &str, clock: fn() -> Time) -> Self {
        Self {
            name: name.to_owned(),
            shares: Vec::new(),
            users: Vec::new(),
            signing_required: true,
            encryption_required: false,
            min_dialect: Dialect::Smb210,
            max_dialect: Dialect::Smb311,
            clock,
            limits: Limits::default(),
        }
    }
}

/// One volume under a name.
#[derive(Clone, Debug)]
pub struct Share {
    /// The name; upper and lower case are the same.
    pub name: String,
    /// What is served.
    pub volume: Arc<Volume>,
    /// Refuse all changes.
    pub read_only: bool,
    /// Refuse messages about it that are not encrypted.
    pub encrypt: bool,
    /// From where it may be used: this host always, and if there are none, from everywhere.
    pub clients: Vec<Clients>,
    /// The names of those who may use it, in any case of letters; without, all may who can
    /// log on.
    pub users: Option<Vec<String>>,
}

impl Share {
    /// For changes, plain, for all users, from everywhere.
    pub fn new(name: &str, volume: Arc<Volume>) -> Self {
        Self {
            name: name.to_owned(),
            volume,
            read_only: false,
            encrypt: false,
            clients: Vec::new(),
            users: None,
        }
    }

    /// Returns whether it may be used from there.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        let all = self.clients.is_empty() || is_this_host(peer);
        all || self.clients.iter().any(|clients| clients.has(peer))
    }

    /// Returns whether this user may use it from there.
    pub(crate) fn is_for(&self, user: &str, peer: IpAddr) -> bool {
        let named = |name: &String| same_name(name.as_bytes(), user.as_bytes());
        let is_user = self
            .users
            .as_ref()
            .is_none_or(|users| users.iter().any(named));
        is_user && self.admits(peer)
    }
}

/// Somebody who may log on.
#[derive(Clone, Debug)]
pub struct User {
    /// The name; upper and lower case are the same.
    pub name: String,
    /// What the password is checked with.
    pub nt_hash: NtHash,
    /// Whom they are on the volumes.
    pub cred: Cred,
}

impl User {
    /// Returns a user with a password.
    pub fn with_password(name: &str, password: &str, cred: Cred) -> Self {
        Self {
            name: name.to_owned(),
            nt_hash: NtHash::of(password),
            cred,
        }
    }
}

/// Bounds on what clients can ask for, and times that they have for it.
///
/// Messages in transit take at most about 2 MiB for each connection, and for each thread beside its
/// first. The table below has what is kept for longer.
///
/// A peer is a host (of IPv6, all that begins with the same 64 bits), or a user of this host, as the
/// kernel knows the owner of a socket.
///
/// | of | in all | of a peer | of a user | of a connection |
/// |---|---|---|---|---|
/// | connections | 64 | 64, but evenly shared when there are no more | 48 | |
/// | connections before a logon | 64, for 10 s | 16 | | |
/// | bytes before a logon | | | | a message of 64 KiB, and less than that besides |
/// | sessions, trees | | | 4,096 trees | 64 sessions, of 256 trees each |
/// | threads | one for each connection, and 256 | 128 of these | | 64 of these |
/// | requests that wait (locks, breaks) | | | 256, of 64 MiB | 64, of 8 MiB |
/// | requests that are parked (notification) | | | 4,096 watches | 512 |
/// | changes kept for notification | 16 MiB of a share; past that, that something changed | | | |
/// | pipes | | | 64 | 16 of a tree |
/// | of a pipe | arguments of 64 KiB; answers that are not read, of 16 KiB and one call's | | | |
/// | replies that are not taken | | | | 1,024, for 30 s |
/// | opens | half of the process's descriptors | | 16,384 | |
/// | opens kept without a connection | | | 256 | |
/// | locks, leases | 1,048,576 and 262,144 of a volume ([`volary_session::Limits`]) | | 262,144 locks | 65,536 leases of a client |
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time. Where there are as many, the next takes the place of the oldest
    /// on which nobody has logged on, of the peer that has most of those; or else of the newest,
    /// idle if any is, of the peer that has most.
    pub connections: usize,
    /// Connections at a time of one peer.
    pub connections_per_peer: usize,
    /// Connections at a time on which one user has logged on; a logon on another is refused.
    pub connections_per_user: usize,
    /// Of these, those on which nobody has logged on; the next takes the oldest one's place.
    pub silent_per_peer: usize,
    /// The longest message before a logon, in bytes. Everything else that is kept
    /// for a connection before one stays below 64 KiB.
    pub message_before_logon: usize,
    /// The time to log on within.
    pub logon_time: Duration,
    /// The longest that a logon waits because of wrong passwords before: the first costs a
    /// sixteenth of it, each one more twice as much, whichever connections they come by. Where an
    /// address made none, a logon from there waits a quarter of it at most.
    pub failed_logon_delay: Duration,
    /// The time within which a message, once begun, has to be there.
    pub message_time: Duration,
    /// The time within which a client has to take a reply.
    pub send_time: Duration,
    /// How long a connection without trees may say nothing.
    pub idle_time: Duration,
    /// The most bytes that a read, a write or a listing moves.
    pub io: u32,
    /// Credits that a connection can have at a time.
    pub credits: u16,
    /// Messages in a compound.
    pub compound: usize,
    /// Sessions of a connection.
    pub sessions: usize,
    /// Trees of a session.
    pub trees: usize,
    /// Trees of a user, in all sessions.
    pub trees_per_user: usize,
    /// Pipes that a user has open at a time, on all connections.
    pub pipes_per_user: usize,
    /// Threads beside the first of each connection. A request for which there is none and that
    /// would wait fails.
    pub threads_beside: usize,
    /// Of these, of one peer.
    pub threads_beside_per_peer: usize,
    /// Files and directories that a user has open at a time, on all connections.
    pub opens: usize,
    /// Directories that a user watches at a time, on all connections.
    pub watches: usize,
    /// Requests of a connection that wait at a time, each on a thread.
    pub waiting: usize,
    /// Bytes of the messages of all `waiting` requests of a connection.
    pub waiting_bytes: usize,
    /// The same of a user, on all connections.
    pub waiting_per_user: usize,
    /// The same of a user, on all connections.
    pub waiting_bytes_per_user: usize,
    /// Requests of a connection that are parked at a time (change notification).
    pub parked: usize,
    /// How long an open that the client wants durable is kept without a connection.
    pub durable_time: Duration,
    /// Opens of a user that are kept without a connection at a time; 0 for none.
    pub durable_opens: usize,
    /// Messages that wait to be sent to a client that takes none.
    pub unsent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            connections_per_peer: 64,
            connections_per_user: 48,
            silent_per_peer: 16,
            message_before_logon: 64 * 1024,
            logon_time: Duration::from_secs(10),
            failed_logon_delay: Duration::from_secs(8),
            message_time: Duration::from_secs(30),
            send_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(900),
            io: 1 << 20,
            credits: 8192,
            compound: 16,
            sessions: 64,
            trees: 256,
            trees_per_user: 1 << 12,
            pipes_per_user: 64,
            threads_beside: 256,
            threads_beside_per_peer: 128,
            opens: 1 << 14,
            watches: 1 << 12,
            waiting: 64,
            waiting_bytes: 8 << 20,
            waiting_per_user: 256,
            waiting_bytes_per_user: 64 << 20,
            parked: 512,
            durable_time: Duration::from_secs(300),
            durable_opens: 256,
            unsent: 1024,
        }
    }
}

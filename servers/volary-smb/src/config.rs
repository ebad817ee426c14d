//! The configuration of a server: [`Config`].

use crate::crypto::NtHash;
use crate::wire::Dialect;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Cred, Time, same_name};
use volary_session::{Clients, Volume, is_this_host};

/// What a server serves, to whom, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's name, as clients see it.
    pub name: String,
    /// The shares.
    pub shares: Vec<Share>,
    /// The users who may log on.
    pub users: Vec<User>,
    /// Refuse messages that are neither signed nor encrypted.
    pub signing_required: bool,
    /// Refuse messages that are not encrypted. Clients before 3.0 cannot encrypt.
    pub encryption_required: bool,
    /// The oldest permitted dialect.
    pub min_dialect: Dialect,
    /// The newest permitted dialect.
    pub max_dialect: Dialect,
    /// Returns the current time.
    pub clock: fn() -> Time,
    /// Limits on what clients can request.
    pub limits: Limits,
}

impl Config {
    /// Returns a configuration without shares and users. Signing is required. Every dialect but the
    /// first is permitted, because its negotiation cannot be protected against a downgrade.
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

/// A volume under a share name.
#[derive(Clone, Debug)]
pub struct Share {
    /// The name. It ignores the case of letters.
    pub name: String,
    /// The volume that is served.
    pub volume: Arc<Volume>,
    /// Refuse all changes.
    pub read_only: bool,
    /// Refuse messages about this share that are not encrypted.
    pub encrypt: bool,
    /// The clients that may use the share. This host always may. If the list is empty, all may.
    pub clients: Vec<Clients>,
    /// The names of users who may use the share, ignoring case. `None` permits all who can log on.
    pub users: Option<Vec<String>>,
}

impl Share {
    /// Returns a share that permits changes, without encryption, for all users and all clients.
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

    /// Returns whether a client at this address may use the share.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        let all = self.clients.is_empty() || is_this_host(peer);
        all || self.clients.iter().any(|clients| clients.has(peer))
    }

    /// Returns whether this user may use the share from this address.
    pub(crate) fn is_for(&self, user: &str, peer: IpAddr) -> bool {
        let named = |name: &String| same_name(name.as_bytes(), user.as_bytes());
        let is_user = self
            .users
            .as_ref()
            .is_none_or(|users| users.iter().any(named));
        is_user && self.admits(peer)
    }
}

/// A user who may log on.
#[derive(Clone, Debug)]
pub struct User {
    /// The name. It ignores the case of letters.
    pub name: String,
    /// The hash of the password.
    pub nt_hash: NtHash,
    /// The user's identity on the volumes.
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

/// Limits on what clients can request, and on the time they have for it.
///
/// Messages in transit take at most about 2 MiB for each connection, and for each thread beside its
/// first one. The table below lists what is kept for longer.
///
/// A peer is a host, or a user of this host as the kernel knows the owner of a socket. In IPv6, all
/// addresses with the same first 64 bits are one host.
///
/// | of | in total | of a peer | of a user | of a connection |
/// |---|---|---|---|---|
/// | connections | 64 | 64, but evenly shared once there are no more | 48 | |
/// | connections before a logon | 64, for 10 s | 16 | | |
/// | bytes before a logon | | | | a message of 64 KiB, and less than that in addition |
/// | sessions, trees | | | 4,096 trees | 64 sessions, of 256 trees each |
/// | threads | one for each connection, and 256 | 128 of these | | 64 of these |
/// | waiting requests (locks, breaks) | | | 256, of 64 MiB | 64, of 8 MiB |
/// | parked requests (notification) | | | 4,096 watches | 512 |
/// | changes kept for notification | 16 MiB of a share; then only that something changed | | | |
/// | pipes | | | 64 | 16 of a tree |
/// | of a pipe | arguments of 64 KiB; unread answers of 16 KiB, and those of one call | | | |
/// | unsent replies | | | | 1,024, for 30 s |
/// | opens | half of the process's descriptors | | 16,384 | |
/// | opens kept without a connection | | | 256 | |
/// | locks, leases | 1,048,576 and 262,144 of a volume ([`volary_session::Limits`]) | | 262,144 locks | 65,536 leases of a client |
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time. At the limit, a new connection replaces another one. This is the
    /// oldest connection without a logon, of the peer that has most of those. If there is none, it
    /// is the newest connection of the peer that has most, preferably an idle one.
    pub connections: usize,
    /// Connections at a time of one peer.
    pub connections_per_peer: usize,
    /// Connections at a time on which one user has logged on. A logon on a further one is refused.
    pub connections_per_user: usize,
    /// Connections of one peer without a logon. A further one replaces the oldest one.
    pub silent_per_peer: usize,
    /// The longest message before a logon, in bytes. Everything else that is kept for a connection
    /// before a logon stays below 64 KiB.
    pub message_before_logon: usize,
    /// The time within which a client must log on.
    pub logon_time: Duration,
    /// The longest delay of a logon because of earlier wrong passwords. The first one costs a
    /// sixteenth of this, and each further one twice as much as the one before, on whichever
    /// connections they come. A logon from an address without wrong passwords waits for a quarter
    /// of it at most.
    pub failed_logon_delay: Duration,
    /// The time within which a message must be complete, once it has begun.
    pub message_time: Duration,
    /// The time within which a client must take a reply.
    pub send_time: Duration,
    /// How long a connection without trees may be silent.
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
    /// Trees of a user, over all sessions.
    pub trees_per_user: usize,
    /// Pipes that a user has open at a time, over all connections.
    pub pipes_per_user: usize,
    /// Threads beside the first one of each connection. A request that would wait fails if no
    /// thread is available.
    pub threads_beside: usize,
    /// Threads beside the first ones, for one peer.
    pub threads_beside_per_peer: usize,
    /// Files and directories that a user has open at a time, over all connections.
    pub opens: usize,
    /// Directories that a user watches at a time, over all connections.
    pub watches: usize,
    /// Waiting requests of a connection at a time, each on its own thread.
    pub waiting: usize,
    /// Bytes of the messages of all `waiting` requests of a connection.
    pub waiting_bytes: usize,
    /// Waiting requests of a user at a time, over all connections.
    pub waiting_per_user: usize,
    /// Bytes of the messages of all waiting requests of a user, over all connections.
    pub waiting_bytes_per_user: usize,
    /// Parked requests of a connection at a time (change notification).
    pub parked: usize,
    /// How long a durable open is kept without a connection.
    pub durable_time: Duration,
    /// Opens of a user that are kept without a connection at a time; 0 for none.
    pub durable_opens: usize,
    /// Replies queued for a client that takes none.
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

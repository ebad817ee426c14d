//! [`Server`]: the listener, and what connections share.

use crate::budget::Budget;
use crate::clock::now;
use crate::config::Config;
use crate::conn::{Conn, Logon, begin};
use crate::files::Common;
use crate::guesses::Guesses;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;
use tracing::{info, warn};
use volary_core::same_name;
use volary_session::{AfterAccept, Guest, LeaseKey, Pool, Seat, Seats, longest_silent};

/// How long a listener rests when it could accept nobody, for want of descriptors, say.
const REST: Duration = Duration::from_millis(100);
/// How long a server that stops waits for requests in progress.
const END_TIME: Duration = Duration::from_secs(3);

/// Serves volumes by SMB.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    /// What the server calls itself in NEGOTIATE.
    pub(crate) guid: [u8; 16],
    /// What keys of leases are made with, which nobody knows.
    pub(crate) lease_secret: [u8; 16],
    /// For each share, what its trees have in common.
    commons: Vec<Arc<Common>>,
    /// For each user of the configuration, what they have.
    budgets: Vec<Arc<Budget>>,
    /// What wrong passwords cost.
    pub(crate) guesses: Guesses,
    conns: Mutex<Vec<Arc<Conn>>>,
    /// Of all connections, beside the first of each.
    pub(crate) threads: Arc<Pool>,
    /// A connection ended.
    left: Condvar,
    /// Sessions by id, for clients that log on again after their connection was lost.
    sessions: Mutex<HashMap<u64, Place>>,
    stop: (UnixStream, UnixStream),
}

/// A session, and the connection that it is on.
type Place = (Weak<Conn>, Weak<Logon>);

impl Server {
    /// A server, not serving yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new(config: Config) -> io::Result<Self> {
        let commons = config
            .shares
            .iter()
            .map(|s| Common::new(&s.volume))
            .collect();
        let budgets = config.users.iter().map(|_| Arc::default()).collect();
        let limits = &config.limits;
        let guesses = Guesses::new(config.users.len(), limits.failed_logon_delay);
        let threads = Pool::new(limits.threads_beside, limits.threads_beside_per_peer);
        let shared = Shared {
            budgets,
            guesses,
            threads: Arc::new(threads),
            config: Arc::new(config),
            commons,
            guid: crate::crypto::random(),
            lease_secret: crate::crypto::random(),
            conns: Mutex::default(),
            left: Condvar::new(),
            sessions: Mutex::default(),
            stop: UnixStream::pair()?,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Serves those who connect, until [`stop`](Self::stop) is called. Then all
    /// connections are ended and what they have open is closed; the volumes
    /// stay attached. A request that is not done after three seconds goes on by
    /// itself. Short of descriptors or memory, it accepts nobody for a while, and
    /// then goes on.
    ///
    /// # Errors
    /// The system's, of a listener that does not listen.
    pub fn serve(&self, listener: &TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        info!(target: "SMB", at = %at, "server begins");
        let served = loop {
            match self.shared.await_client(listener) {
                Ok(Some((socket, peer))) => self.shared.welcome(socket, peer),
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.shared.end_all();
        match &served {
            Ok(()) => info!(target: "SMB", at = %at, "server ends"),
            // Whoever called says so louder.
            Err(e) => info!(target: "SMB", at = %at, reason = %e, "server ends"),
        }
        served
    }

    /// Lets [`serve`](Self::serve) come back.
    pub fn stop(&self) {
        // A full pipe says the same.
        let _ = (&self.shared.stop.0).write(&[1]);
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Returns the key under which sessions know the lease that a client of this user, of the list,
    /// has by `key`: for whoever looks at leases beside the server.
    pub fn lease_key(&self, user: &str, client: [u8; 16], key: [u8; 16]) -> LeaseKey {
        self.shared.lease_key(user, client, key)
    }

    /// How many clients are connected.
    pub fn connection_count(&self) -> usize {
        self.shared.conns.lock().len()
    }
}

impl Shared {
    /// The key under which sessions keep a lease. It is the client's and the user's together: any
    /// user can say that they call from the client of another.
    pub(crate) fn lease_key(&self, user: &str, client: [u8; 16], key: [u8; 16]) -> LeaseKey {
        let mut hasher = SipHasher13::new_with_key(&self.lease_secret);
        (client, user).hash(&mut hasher);
        LeaseKey {
            client: hasher.finish128().as_bytes(),
            key,
        }
    }

    /// What the trees of the share at `place` in the configuration have in common.
    pub(crate) fn common(&self, place: usize) -> Option<Arc<Common>> {
        self.commons.get(place).cloned()
    }

    /// The next client, or none if the server is to stop.
    fn await_client(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        loop {
            let mut fds = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::new(&self.stop.1, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            if !fds[1].revents().is_empty() {
                let _ = (&self.stop.1).read(&mut [0]);
                return Ok(None);
            }
            match listener.accept() {
                Ok(client) => return Ok(Some(client)),
                Err(e) => match AfterAccept::of(&e) {
                    AfterAccept::GoOn => {}
                    AfterAccept::Rest => self.rest(),
                    AfterAccept::End => return Err(e),
                },
            }
        }
    }

    /// Lets time pass, or the server be stopped: short of descriptors, somebody who has not logged
    /// on gives up theirs.
    fn rest(&self) {
        warn!(target: "SMB", limit = "descriptors or memory", "limit reached");
        if let Some(silent) = longest_silent(&self.open()) {
            silent.log_sent_away("it gives way to others");
            silent.close();
        }
        let mut fds = [PollFd::new(&self.stop.1, PollFlags::IN)];
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: REST.subsec_nanos().into(),
        };
        // Whatever it answers, accepting is tried again.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Whether any share is for this client.
    fn admits(&self, peer: IpAddr) -> bool {
        let shares = &self.config.shares;
        shares.is_empty() || shares.iter().any(|share| share.admits(peer))
    }

    fn welcome(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) {
        let peer = peer.ip().to_canonical();
        if !self.admits(peer) {
            warn!(target: "SMB", address = %peer, "client refused");
            return;
        }
        if socket.set_nonblocking(false).is_err() {
            return;
        }
        // A socket that fails at once is a client that is gone.
        let Ok(conn) = Conn::new(Arc::clone(self), socket, peer) else {
            return;
        };
        if !self.makes_room(&conn) {
            warn!(target: "SMB", limit = "connections", address = %peer, "limit reached");
            return;
        }
        let conn = Arc::new(conn);
        self.conns.lock().push(Arc::clone(&conn));
        begin(&conn);
    }

    /// Whether there is room for a new connection, once another has given way if it has to.
    fn makes_room(&self, conn: &Conn) -> bool {
        let limits = &self.config.limits;
        // Those that are ending have their threads still, for a moment.
        if self.conns.lock().len() >= limits.connections.saturating_mul(2) {
            return false;
        }
        let seats = Seats {
            all: limits.connections,
            of_party: limits.connections_per_peer,
            silent_of_party: limits.silent_per_peer,
        };
        match seats.find(&self.open(), conn.party()) {
            Seat::Free => true,
            Seat::InsteadOf(other) => {
                other.log_sent_away("it gives way to others");
                other.close();
                true
            }
            Seat::Nowhere => false,
        }
    }

    /// The connections that are not ending, the oldest first.
    fn open(&self) -> Vec<Arc<Conn>> {
        let mut open = self.conns.lock().clone();
        open.retain(|conn| !conn.is_closed());
        open
    }

    /// The client's first connection on which this user has logged on. Whoever else says to be
    /// that client is told nothing that is meant for it.
    pub(crate) fn first_conn_of(&self, client_guid: [u8; 16], user: &str) -> Option<Arc<Conn>> {
        let conns = self.conns.lock().clone();
        conns.into_iter().find(|conn| {
            conn.client_guid() == client_guid && !conn.is_closed() && conn.has_logon_of(user)
        })
    }

    /// A connection has ended.
    pub(crate) fn forget(&self, conn: &Arc<Conn>) {
        self.conns.lock().retain(|other| !Arc::ptr_eq(other, conn));
        self.left.notify_all();
    }

    fn end_all(&self) {
        let mut conns = self.conns.lock();
        for conn in conns.clone() {
            conn.close();
        }
        let until = now() + END_TIME;
        while !conns.is_empty() && !self.left.wait_until(&mut conns, until).timed_out() {}
        drop(conns);
        self.end_durables();
    }

    /// What the user at `place` in the configuration has.
    pub(crate) fn budget(&self, place: usize) -> Arc<Budget> {
        self.budgets.get(place).cloned().unwrap_or_default()
    }

    /// Ends what is kept for clients that are away.
    pub(crate) fn end_durables(&self) {
        for common in &self.commons {
            common.durables.end_all();
        }
    }

    /// An id that no session has; of 32 bits, as there are clients that keep no more.
    pub(crate) fn new_session_id(&self) -> u64 {
        let sessions = self.sessions.lock();
        loop {
            let id = u64::from(u32::from_le_bytes(crate::crypto::random()));
            if id != 0 && !sessions.contains_key(&id) {
                return id;
            }
        }
    }

    pub(crate) fn add_logon(&self, conn: &Arc<Conn>, logon: &Arc<Logon>) {
        let entry = (Arc::downgrade(conn), Arc::downgrade(logon));
        self.sessions.lock().insert(logon.id, entry);
    }

    pub(crate) fn forget_logon(&self, id: u64) {
        self.sessions.lock().remove(&id);
    }

    /// A session by its id, and the connection that it is on.
    pub(crate) fn find_logon(&self, id: u64) -> Option<(Arc<Conn>, Arc<Logon>)> {
        let sessions = self.sessions.lock();
        let (conn, logon) = sessions.get(&id)?;
        Some((conn.upgrade()?, logon.upgrade()?))
    }

    /// The place in the configuration of the share called `name`.
    pub(crate) fn share_place(&self, name: &str) -> Option<usize> {
        let mut shares = self.config.shares.iter();
        shares.position(|share| same_name(share.name.as_bytes(), name.as_bytes()))
    }

    /// Lets requests that wait on any volume see at once that they are cancelled.
    pub(crate) fn wake_waiting(&self) {
        for share in &self.config.shares {
            share.volume.wake_waiting();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

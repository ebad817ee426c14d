//! [`Server`]: the listener, and the admission of clients.

use crate::clock::now;
use crate::config::Config;
use crate::conn::{Conn, Register, begin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};
use volary_session::{AfterAccept, Guest, LeaseKey, Seat, Seats, longest_silent};

/// How long the listener rests after it could not accept a client, for example for lack of
/// descriptors.
const REST: Duration = Duration::from_millis(100);
/// How long a stopping server waits for requests in progress.
const END_TIME: Duration = Duration::from_secs(3);

/// Serves volumes by SMB.
#[derive(Clone, Debug)]
pub struct Server {
    register: Arc<Register>,
    /// Writing to the first one stops a server that polls the second one.
    stop: Arc<(UnixStream, UnixStream)>,
}

impl Server {
    /// Returns a server that does not serve yet.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(config: Config) -> io::Result<Self> {
        Ok(Self {
            register: Arc::new(Register::new(config)),
            stop: Arc::new(UnixStream::pair()?),
        })
    }

    /// Serves clients until [`stop`](Self::stop) is called. It then ends all connections and closes
    /// their files, but the volumes stay attached. A request that takes longer than three seconds
    /// finishes on its own. If descriptors or memory run short, no clients are accepted for a
    /// while.
    ///
    /// # Errors
    /// Those of the system, if the listener fails.
    pub fn serve(&self, listener: &TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        info!(target: "SMB", at = %at, "server begins");
        let served = loop {
            match self.await_client(listener) {
                Ok(Some((socket, peer))) => self.welcome(socket, peer),
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.register.end_all(now() + END_TIME);
        match &served {
            Ok(()) => info!(target: "SMB", at = %at, "server ends"),
            // The caller reports the error more prominently.
            Err(e) => info!(target: "SMB", at = %at, reason = %e, "server ends"),
        }
        served
    }

    /// Makes [`serve`](Self::serve) return.
    pub fn stop(&self) {
        // If the buffer is full, the server has been told already.
        let _ = (&self.stop.0).write(&[1]);
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn register(&self) -> Arc<Register> {
        Arc::clone(&self.register)
    }

    /// Returns the key under which sessions store a lease of a configured user's client, whose own
    /// key is `key`. This is for code that inspects leases outside of the server.
    pub fn lease_key(&self, user: &str, client: [u8; 16], key: [u8; 16]) -> LeaseKey {
        self.register.shared.lease_key(user, client, key)
    }

    /// Returns the number of connected clients.
    pub fn connection_count(&self) -> usize {
        self.register.count()
    }

    /// Returns the next client, or `None` if the server must stop.
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

    /// Waits a while, or until the server is stopped. If descriptors are short, also ends the
    /// connection that has been without a logon for the longest time.
    fn rest(&self) {
        warn!(target: "SMB", limit = "descriptors or memory", "limit reached");
        if let Some(silent) = longest_silent(&self.register.open()) {
            silent.link.log_sent_away("it gives way to others");
            silent.link.close();
        }
        let mut fds = [PollFd::new(&self.stop.1, PollFlags::IN)];
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: REST.subsec_nanos().into(),
        };
        // Whatever the result, accepting is tried again.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Returns whether any share is for this client.
    fn admits(&self, peer: IpAddr) -> bool {
        let shares = &self.register.shared.config.shares;
        shares.is_empty() || shares.iter().any(|share| share.admits(peer))
    }

    fn welcome(&self, socket: TcpStream, peer: SocketAddr) {
        let peer = peer.ip().to_canonical();
        if !self.admits(peer) {
            warn!(target: "SMB", address = %peer, "client refused");
            return;
        }
        if socket.set_nonblocking(false).is_err() {
            return;
        }
        // If the socket fails at once, the client is gone.
        let Ok(conn) = Conn::new(Arc::clone(&self.register), socket, peer) else {
            return;
        };
        if !self.makes_room(&conn) {
            warn!(target: "SMB", limit = "connections", address = %peer, "limit reached");
            return;
        }
        let conn = Arc::new(conn);
        self.register.insert(Arc::clone(&conn));
        begin(&conn);
    }

    /// Returns whether there is room for a new connection. Ends another one if necessary.
    fn makes_room(&self, conn: &Conn) -> bool {
        let limits = &self.register.shared.config.limits;
        // Connections that are ending still have their threads for a moment.
        if self.register.count() >= limits.connections.saturating_mul(2) {
            return false;
        }
        let seats = Seats {
            all: limits.connections,
            of_party: limits.connections_per_peer,
            silent_of_party: limits.silent_per_peer,
        };
        match seats.find(&self.register.open(), conn.party()) {
            Seat::Free => true,
            Seat::InsteadOf(other) => {
                other.link.log_sent_away("it gives way to others");
                other.link.close();
                true
            }
            Seat::Nowhere => false,
        }
    }
}

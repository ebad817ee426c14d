//! [`Conn`]: a connection, from its first byte to its last; and [`Register`]: all of them.

use super::frame::Frames;
use super::members::{Member, Members};
use super::setups::Setups;
use crate::client::{Link, Links, Shared};
use crate::config::Config;
use crate::files::{self, Common};
use parking_lot::{Condvar, Mutex};
use rustix::net::sockopt;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use volary_session::{Guest, Party, is_this_host, socket_owner};

/// A client's connection.
pub(crate) struct Conn {
    pub(crate) link: Arc<Link>,
    pub(super) register: Arc<Register>,
    pub(super) members: Members,
    pub(super) setups: Mutex<Setups>,
    pub(super) frames: Mutex<Frames>,
    /// Whether a logon is waiting on its own thread.
    pub(super) logon_waits: AtomicBool,
}

impl Conn {
    pub(crate) fn new(
        register: Arc<Register>,
        socket: TcpStream,
        peer: IpAddr,
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        keep_alive(&socket)?;
        if peer.is_loopback() {
            send_at_once(&socket);
        }
        let told = match is_this_host(peer) {
            true => socket_owner(socket.peer_addr()?, socket.local_addr()?),
            false => Ok(None),
        };
        let shared = Arc::clone(&register.shared);
        let socket = Arc::new(socket);
        let frames = Frames::new(Arc::clone(&socket), &shared.config.limits)?;
        let all: Weak<Register> = Arc::downgrade(&register);
        let link = Link::new(shared, socket, peer, Party::of(peer, &told), all)?;
        Ok(Self {
            link: Arc::new(link),
            register,
            members: Members::default(),
            setups: Mutex::default(),
            frames: Mutex::new(frames),
            logon_waits: AtomicBool::new(false),
        })
    }

    /// Ends a session, and closes what is open in it. Durable opens are kept if the user may come
    /// `back`.
    pub(super) fn end_logon(&self, member: &Member, back: bool) {
        let id = member.logon.id;
        self.members.forget(id);
        self.register.forget_logon(id);
        if !member.logon.end() {
            return;
        }
        for tree in member.trees() {
            files::end_tree(&tree, back);
        }
        // Close opens that were added meanwhile.
        for tree in member.trees() {
            files::end_tree(&tree, false);
        }
        member.part_from_all();
    }

    /// Ends all sessions, because the connection ends.
    pub(super) fn end_logons(&self) {
        for member in self.members.all() {
            self.end_logon(&member, true);
        }
    }
}

impl Guest for Conn {
    fn party(&self) -> Party {
        self.link.party
    }

    fn is_known(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns whether nothing is open and nothing waits.
    fn is_idle(&self) -> bool {
        self.link.waits.is_empty() && self.members.is_idle()
    }
}

/// Enables keep-alive, to detect within minutes if a silent client is gone, so that its opens are
/// closed.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(socket, 4)?;
    Ok(())
}

/// Turns pacing off for a client on this host. Nothing else shares the path, and a congestion
/// control that measures and paces (BBR) only makes large replies slower.
fn send_at_once(socket: &TcpStream) {
    // A system without it keeps its own congestion control.
    let _ = sockopt::set_tcp_congestion(socket, "reno");
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn")
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

/// The connections of a server and their sessions.
pub(crate) struct Register {
    pub(crate) shared: Arc<Shared>,
    /// The shared state of each share's trees.
    commons: Vec<Arc<Common>>,
    conns: Mutex<Vec<Arc<Conn>>>,
    /// Signalled when a connection has ended.
    left: Condvar,
    /// Sessions by id, for clients that log on again after they lost their connection.
    sessions: Mutex<HashMap<u64, Place>>,
}

/// A session, and the connection that it is on.
type Place = (Weak<Conn>, Weak<Member>);

impl Register {
    pub(crate) fn new(config: Config) -> Self {
        let shares = config.shares.iter();
        Self {
            commons: shares.map(|share| Common::new(&share.volume)).collect(),
            shared: Arc::new(Shared::new(config)),
            conns: Mutex::default(),
            left: Condvar::new(),
            sessions: Mutex::default(),
        }
    }

    /// Returns the shared state of the trees of the share at `place` in the configuration.
    pub(super) fn common(&self, place: usize) -> Option<Arc<Common>> {
        self.commons.get(place).cloned()
    }

    /// Returns the number of connections, including those that are ending.
    pub(crate) fn count(&self) -> usize {
        self.conns.lock().len()
    }

    /// Returns the connections that are not ending, the oldest first.
    pub(crate) fn open(&self) -> Vec<Arc<Conn>> {
        let mut open = self.conns.lock().clone();
        open.retain(|conn| !conn.link.is_closed());
        open
    }

    pub(crate) fn insert(&self, conn: Arc<Conn>) {
        self.conns.lock().push(conn);
    }

    /// Removes a connection that has ended.
    pub(super) fn forget(&self, conn: &Arc<Conn>) {
        self.conns.lock().retain(|other| !Arc::ptr_eq(other, conn));
        self.left.notify_all();
    }

    /// Ends all connections, and waits for that until `until` at most. Then ends the opens that are
    /// kept for disconnected clients.
    pub(crate) fn end_all(&self, until: Instant) {
        let mut conns = self.conns.lock();
        for conn in conns.clone() {
            conn.link.close();
        }
        while !conns.is_empty() && !self.left.wait_until(&mut conns, until).timed_out() {}
        drop(conns);
        self.end_durables();
    }

    /// Ends the opens that are kept for disconnected clients.
    pub(crate) fn end_durables(&self) {
        for common in &self.commons {
            files::end_durables(common);
        }
    }

    /// Returns an unused session id. It has 32 bits, because some clients store no more.
    pub(super) fn new_session_id(&self) -> u64 {
        let sessions = self.sessions.lock();
        loop {
            let id = u64::from(u32::from_le_bytes(crate::crypto::random()));
            if id != 0 && !sessions.contains_key(&id) {
                return id;
            }
        }
    }

    pub(super) fn add_logon(&self, conn: &Arc<Conn>, member: &Arc<Member>) {
        let entry = (Arc::downgrade(conn), Arc::downgrade(member));
        self.sessions.lock().insert(member.logon.id, entry);
    }

    fn forget_logon(&self, id: u64) {
        self.sessions.lock().remove(&id);
    }

    /// Returns a session by its id, and the connection that it is on.
    pub(super) fn find_logon(&self, id: u64) -> Option<(Arc<Conn>, Arc<Member>)> {
        let sessions = self.sessions.lock();
        let (conn, member) = sessions.get(&id)?;
        Some((conn.upgrade()?, member.upgrade()?))
    }
}

impl Links for Register {
    fn first_of(&self, client_guid: [u8; 16], user: &str) -> Option<Arc<Link>> {
        let conns = self.conns.lock().clone();
        let found = conns.into_iter().find(|conn| {
            let link = &conn.link;
            let is_theirs = link.client_guid() == client_guid;
            is_theirs && !link.is_closed() && conn.members.has_user(user)
        });
        found.map(|conn| Arc::clone(&conn.link))
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Register")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

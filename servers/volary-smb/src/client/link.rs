//! [`Link`]: the connection to a client, without what its users have open, and without reading
//! requests.

use super::buffers::Buffers;
use super::sending::{Left, Sending};
use super::waits::Waits;
use super::window::Window;
use super::{Broken, Logon, Negotiated, Reply, Security, Shared, Turn};
use crate::config::Limits;
use crate::wire::header::flags;
use crate::wire::{Command, Dialect, Header};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use tracing::warn;
use volary_core::escape_short;
use volary_session::Party;

/// All connections.
pub(crate) trait Links: Send + Sync {
    /// Returns the client's first connection on which this user has logged on. Others who claim to
    /// be that client are told nothing that is meant for it.
    fn first_of(&self, client_guid: [u8; 16], user: &str) -> Option<Arc<Link>>;
}

/// The connection to a client.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) peer: IpAddr,
    pub(crate) party: Party,
    /// The result of the negotiation, once it is done.
    pub(crate) negotiated: OnceLock<Negotiated>,
    pub(crate) window: Mutex<Window>,
    pub(crate) waits: Waits,
    pub(crate) turn: Turn,
    socket: Arc<TcpStream>,
    sending: Sending,
    closed: AtomicBool,
    all: Weak<dyn Links>,
}

impl Link {
    /// Returns the link of a new connection.
    ///
    /// # Errors
    /// The system's, for the socket.
    pub(crate) fn new(
        shared: Arc<Shared>,
        socket: Arc<TcpStream>,
        peer: IpAddr,
        party: Party,
        all: Weak<dyn Links>,
    ) -> io::Result<Self> {
        let limits = &shared.config.limits;
        Ok(Self {
            window: Mutex::new(Window::new(limits.credits)),
            turn: Turn::new(limits.waiting, Arc::clone(&shared.threads), party),
            sending: Sending::new(Arc::clone(&socket), limits)?,
            peer,
            party,
            negotiated: OnceLock::new(),
            waits: Waits::default(),
            socket,
            closed: AtomicBool::new(false),
            all,
            shared,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Returns the negotiated dialect. Before that, no request needs it.
    pub(crate) fn dialect(&self) -> Dialect {
        self.negotiated.get().map_or(Dialect::Smb202, |n| n.dialect)
    }

    /// Returns the client's GUID, which is the client's part of a lease key.
    pub(crate) fn client_guid(&self) -> [u8; 16] {
        self.negotiated.get().map_or([0; 16], |n| n.client_guid)
    }

    /// Returns the most bytes that a read, a write or a transaction of this connection
    /// may move.
    pub(crate) fn io_max(&self) -> u32 {
        self.negotiated.get().map_or(0, |n| n.io_max)
    }

    /// Returns the buffers for large replies.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.sending.buffers
    }

    /// Returns a reply's header. It grants credits as far as the client asked for them.
    pub(crate) fn reply_header(&self, request: &Header) -> Header {
        Header {
            credits: self.window.lock().grant(request.credits),
            flags: flags::RESPONSE | request.flags & (flags::RELATED | flags::PRIORITY),
            next_command: 0,
            async_id: 0,
            ..*request
        }
    }

    /// Returns the client's first connection on which this user has logged on.
    pub(crate) fn first_of(&self, user: &str) -> Option<Arc<Self>> {
        let all = self.all.upgrade()?;
        all.first_of(self.client_guid(), user)
    }

    /// Sends replies as one message.
    ///
    /// # Errors
    /// [`Broken`] if the client does not take them.
    pub(crate) fn send(&self, replies: Vec<Reply>) -> Result<(), Broken> {
        self.sending.send(replies)
    }

    /// Queues a reply, for threads other than the connection's own.
    pub(crate) fn post(self: &Arc<Self>, reply: Reply) {
        if self.is_closed() {
            return;
        }
        match self.sending.leave(reply, self.limits().unsent) {
            Left::Queued => {}
            Left::Full => {
                self.log_sent_away("it takes nothing that is sent");
                self.close();
            }
            Left::Alone => {
                let link = Arc::clone(self);
                let name = "smb sender".to_owned();
                let started = thread::Builder::new()
                    .name(name)
                    .spawn(move || link.sending.empty_queue(|| link.close()));
                if started.is_err() {
                    self.close();
                }
            }
        }
    }

    /// Tells the client that a lease or an oplock of one of `logon`'s opens is being broken. `body`
    /// is the notification (MS-SMB2 2.2.23). `sealed` says whether the open's tree is encrypted.
    pub(crate) fn send_break(self: &Arc<Self>, logon: &Arc<Logon>, sealed: bool, body: Vec<u8>) {
        let seal = (sealed || logon.sealed) && logon.keys.seal.is_some();
        let header = Header {
            command: Command::OplockBreak.code(),
            flags: flags::RESPONSE,
            message_id: u64::MAX,
            ..Header::default()
        };
        let security = Security {
            logon: Some(Arc::clone(logon)),
            sign: false,
            seal,
        };
        self.post(Reply {
            header,
            body: body.into(),
            security,
        });
    }

    /// Ends the connection: no more requests are read, and waiting ones are cancelled. The
    /// connection's last thread closes what is open.
    pub(crate) fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        // If the socket is already closed, so much the better.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.waits.end_all();
        self.shared.wake_waiting();
        self.shared.guesses.wake();
        self.turn.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns whether the client has closed the connection, even if no thread has noticed yet.
    pub(crate) fn has_hung_up(&self) -> bool {
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let looked = poll(&mut fds, Some(&Timespec::default()));
        self.is_closed() || looked.is_ok() && fds[0].revents().intersects(ended)
    }

    /// Logs that a limit was reached, for a user if one has logged on.
    pub(crate) fn log_limit(&self, limit: &'static str, user: &str) {
        let user = escape_short(user.as_bytes());
        warn!(target: "SMB", limit, user, address = %self.peer, "limit reached");
    }

    /// Logs why the server ends the connection.
    pub(crate) fn log_sent_away(&self, reason: &'static str) {
        warn!(target: "SMB", address = %self.peer, reason, "connection sent away");
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("peer", &self.peer)
            .field("dialect", &self.dialect())
            .finish_non_exhaustive()
    }
}

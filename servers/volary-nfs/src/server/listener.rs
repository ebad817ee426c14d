//! [`Server`]: listens, and owns the connections.

use super::conn::Conn;
use super::dispatch::Way;
use super::options::{Limits, OnEnd, ServeOptions};
use super::programs::Programs;
use crate::exports::options::ExportOptions;
use crate::rpc::owner::Database;
use crate::rpc::owner::Owner;
use crate::timer;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tracing::{info, warn};
use volary_session::{
    AfterAccept, Party, Pool, Seat, Seats, Volume, is_this_host, longest_silent, socket_owner,
};

/// How often unused opens are closed.
const TICK: Duration = Duration::from_secs(1);
/// How many connections one listener accepts before others have their turn.
const AT_ONCE: usize = 64;
/// How long a stopping server waits for calls in progress.
const END_TIME: Duration = Duration::from_secs(3);

/// A running server. It stops when dropped.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// Its close wakes the thread that listens.
    wake: Option<OwnedFd>,
    listening: Option<JoinHandle<io::Result<()>>>,
}

struct Shared {
    programs: Arc<Programs>,
    limits: Limits,
    /// Threads of all connections, beside the first of each.
    threads: Arc<Pool>,
    conns: Mutex<Vec<Arc<Conn>>>,
    database: Database,
    believed: u32,
}

struct Door {
    listener: TcpListener,
    local: SocketAddr,
    only_portmap: bool,
}

/// Serves volumes, each as a separate export.
///
/// # Errors
/// `InvalidInput` for a name that is empty, contains `/` or NUL, or is repeated, and without an
/// address to listen on. Those of listening on an address: `AddrInUse`, `AddrNotAvailable`,
/// `PermissionDenied`.
pub fn serve(
    exports: Vec<(Arc<Volume>, ExportOptions)>,
    options: &ServeOptions,
) -> io::Result<Server> {
    check_names(&exports)?;
    let mut doors = Vec::new();
    for (addresses, only_portmap) in [(&options.listen, false), (&options.portmap, true)] {
        for address in addresses {
            doors.push(Door::open(*address, only_portmap)?);
        }
    }
    let first = doors.iter().find(|door| !door.only_portmap);
    let Some(first) = first else {
        return Err(invalid("nowhere to listen"));
    };
    let programs = Programs::new(exports, options);
    programs.set_port(first.local.port());
    let addresses = doors
        .iter()
        .filter(|d| !d.only_portmap)
        .map(|d| d.local)
        .collect();
    let shared = Arc::new(Shared {
        programs,
        limits: options.limits,
        threads: Arc::new(Pool::new(
            options.limits.threads_beside,
            options.limits.threads_beside_of_peer,
        )),
        conns: Mutex::default(),
        database: options.database.clone(),
        believed: options.believed,
    });
    // Child programs must not inherit it: they would hold it open.
    let (woken, wake) = io::pipe()?;
    let (woken, wake) = (OwnedFd::from(woken), OwnedFd::from(wake));
    shared.programs.nlm().tell_of_restart();
    let listening = {
        let shared = Arc::clone(&shared);
        let mut last = Last(options.on_end.clone());
        let thread = Builder::new().name("nfs listen".into());
        thread.spawn(move || {
            let listened = shared.listen(&doors, &woken);
            match &listened {
                Ok(()) => {
                    info!(target: "NFS", "server ends");
                    last.stopped();
                }
                // Logged at a low level: the caller of `stop` gets the error.
                Err(e) => info!(target: "NFS", reason = %e, "server ends"),
            }
            listened
        })?
    };
    info!(target: "NFS", at = ?addresses, "server begins");
    Ok(Server {
        shared,
        addresses,
        wake: Some(wake),
        listening: Some(listening),
    })
}

fn check_names(exports: &[(Arc<Volume>, ExportOptions)]) -> io::Result<()> {
    for (at, (_, export)) in exports.iter().enumerate() {
        let name = &export.name;
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(invalid("an export's name is empty, or has / or NUL in it"));
        }
        let before = exports.get(..at).unwrap_or_default();
        let id = crate::exports::export::id_of(name);
        if before
            .iter()
            .any(|(_, e)| crate::exports::export::id_of(&e.name) == id)
        {
            return Err(invalid("two exports have the same name"));
        }
    }
    Ok(())
}

fn invalid(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

impl Server {
    /// Returns the addresses it listens on, with the ports that the kernel chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the programs that it serves.
    pub fn programs(&self) -> &Arc<Programs> {
        &self.shared.programs
    }

    /// Returns how many connections are open.
    pub fn connection_count(&self) -> usize {
        let conns = self.shared.conns.lock();
        conns.iter().filter(|conn| !conn.is_ended()).count()
    }

    /// Stops the server: it accepts no more calls, finishes those in progress, and ends all opens
    /// and locks. A call that is not finished after three seconds goes on by itself. The volumes
    /// stay attached.
    ///
    /// # Errors
    /// The error that ended the server before.
    pub fn stop(mut self) -> io::Result<()> {
        self.stop_now()
    }

    fn stop_now(&mut self) -> io::Result<()> {
        // Closing the pipe wakes the thread that listens.
        self.wake = None;
        let Some(listening) = self.listening.take() else {
            return Ok(());
        };
        let panicked = |_| Err(io::Error::other("the thread that listens has panicked"));
        let listened = listening.join().unwrap_or_else(panicked);
        let until = timer::now() + END_TIME;
        let conns: Vec<_> = self.shared.conns.lock().drain(..).collect();
        conns.iter().for_each(|conn| conn.end());
        conns.iter().for_each(|conn| conn.join(until));
        self.shared.programs.end();
        listened
    }
}

/// Logs that a connection is closed to make room.
fn sent_away(conn: &Conn) {
    let address = conn.address();
    let reason = "it gives way to others";
    warn!(target: "NFS", %address, reason, "connection sent away");
}

/// Reports a server's end when dropped, if there is a function to call.
struct Last(Option<OnEnd>);

impl Last {
    fn stopped(&mut self) {
        self.0 = None;
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(on_end) = &self.0 {
            on_end.tell();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // To learn the error, call `stop`.
        let _ = self.stop_now();
    }
}

impl Door {
    fn open(address: SocketAddr, only_portmap: bool) -> io::Result<Self> {
        let with_address = |e: io::Error| io::Error::new(e.kind(), format!("{address}: {e}"));
        let listener = TcpListener::bind(address).map_err(with_address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            local: listener.local_addr()?,
            listener,
            only_portmap,
        })
    }
}

impl Shared {
    /// # Errors
    /// Those of a listener that no longer listens.
    fn listen(&self, doors: &[Door], woken: &OwnedFd) -> io::Result<()> {
        let mut ticked = timer::now();
        let mut exhausted = false;
        loop {
            // If descriptors ran out, do not poll the listeners until the next tick.
            let open = if exhausted { &[] } else { doors };
            let mut fds: Vec<_> = open
                .iter()
                .map(|door| PollFd::new(&door.listener, PollFlags::IN))
                .collect();
            fds.push(PollFd::new(woken, PollFlags::IN));
            let timeout = Timespec {
                tv_sec: TICK.as_secs().cast_signed(),
                tv_nsec: 0,
            };
            // If interrupted or short of memory, the loop tries again.
            let _ = poll(&mut fds, Some(&timeout));
            let stop = fds.last().is_some_and(|fd| !fd.revents().is_empty());
            drop(fds);
            if stop {
                return Ok(());
            }
            exhausted = false;
            for door in doors {
                exhausted |= !self.accept(door)?;
            }
            if exhausted {
                warn!(target: "NFS", limit = "descriptors or memory", "limit reached");
                if let Some(conn) = longest_silent(&self.open()) {
                    sent_away(&conn);
                    conn.end();
                }
            }
            if ticked.elapsed() >= TICK {
                ticked = timer::now();
                self.programs.tick();
                self.forget_ended();
            }
        }
    }

    /// Accepts waiting clients at one listener, at most [`AT_ONCE`]. Returns false if resources are
    /// short.
    ///
    /// # Errors
    /// Those of a listener that no longer listens.
    fn accept(&self, door: &Door) -> io::Result<bool> {
        for _ in 0..AT_ONCE {
            match door.listener.accept() {
                Ok((socket, peer)) => {
                    // If this fails, the client may connect again.
                    let _ = self.take(door, socket, peer);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) => match AfterAccept::of(&e) {
                    AfterAccept::GoOn => {}
                    AfterAccept::Rest => return Ok(false),
                    AfterAccept::End => return Err(e),
                },
            }
        }
        Ok(true)
    }

    fn take(&self, door: &Door, socket: TcpStream, peer: SocketAddr) -> io::Result<()> {
        self.forget_ended();
        let address = peer.ip().to_canonical();
        if !self.programs.exports().admits(peer.ip()) {
            warn!(target: "NFS", %address, "client refused");
            return Ok(());
        }
        let local = socket.local_addr().unwrap_or(door.local);
        let is_local = is_this_host(peer.ip());
        let told = match is_local {
            true => socket_owner(peer, local),
            false => Ok(None),
        };
        let party = Party::of(peer.ip(), &told);
        if !self.makes_room(party, is_local) {
            warn!(target: "NFS", limit = "connections", %address, "limit reached");
            return Ok(());
        }
        let mut conns = self.conns.lock();
        socket.set_nonblocking(false)?;
        let owner = match is_local {
            true => Owner::of(&told, peer.port(), self.believed, &self.database),
            false => Owner::Trusted,
        };
        let way = Way {
            peer,
            local,
            only_portmap: door.only_portmap,
            owner: Arc::new(owner),
        };
        let (programs, pool) = (Arc::clone(&self.programs), Arc::clone(&self.threads));
        let conn = Conn::start(programs, self.limits, party, pool, way, socket)?;
        conns.push(conn);
        Ok(())
    }

    /// Returns whether there is room for one more connection of this party. Closes another one if
    /// necessary.
    fn makes_room(&self, party: Party, is_local: bool) -> bool {
        let limits = &self.limits;
        let seats = Seats {
            all: limits.connections,
            of_party: match is_local {
                true => limits.connections,
                false => limits.connections_of_peer,
            },
            silent_of_party: limits.silent_of_peer,
        };
        match seats.find(&self.open(), party) {
            Seat::Free => true,
            Seat::InsteadOf(conn) => {
                sent_away(&conn);
                conn.end();
                true
            }
            Seat::Nowhere => false,
        }
    }

    /// Returns the open connections, from oldest to newest.
    fn open(&self) -> Vec<Arc<Conn>> {
        let mut open = self.conns.lock().clone();
        open.retain(|conn| !conn.is_ended());
        open
    }

    fn forget_ended(&self) {
        let mut conns = self.conns.lock();
        let ended: Vec<_> = conns.extract_if(.., |conn| conn.is_ended()).collect();
        drop(conns);
        // Their threads have ended or are about to.
        drop(ended);
    }
}

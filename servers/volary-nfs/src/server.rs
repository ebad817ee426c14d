//! [`Server`]: listens, and keeps the connections.

use crate::conn::Conn;
use crate::dispatch::Way;
use crate::options::{ExportOptions, Limits, OnEnd, ServeOptions};
use crate::owner::Database;
use crate::owner::Owner;
use crate::programs::Programs;
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

/// How often opens that nobody uses are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Connections that are accepted at one door before others have their turn.
const AT_ONCE: usize = 64;
/// How long a server that stops waits for calls in progress.
const END_TIME: Duration = Duration::from_secs(3);

/// A running server. Dropped, it stops.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// Written to, it wakes the thread that listens.
    wake: Option<OwnedFd>,
    listening: Option<JoinHandle<io::Result<()>>>,
}

struct Shared {
    programs: Arc<Programs>,
    limits: Limits,
    /// Of all connections, beside the first of each.
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

/// Serves volumes, each as an export of its own.
///
/// # Errors
/// `InvalidInput` for a name that is empty, has `/` or NUL in it, or is there
/// twice, and without an address to listen on; those of listening on an address:
/// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied`.
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
    // Not for programs that are started meanwhile: they would hold it open.
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
                // Whoever waits for its end says so louder.
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
        let id = crate::export::id_of(name);
        if before
            .iter()
            .any(|(_, e)| crate::export::id_of(&e.name) == id)
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
    /// Returns where it listens, with the ports that it was given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns what it answers with.
    pub fn programs(&self) -> &Arc<Programs> {
        &self.shared.programs
    }

    /// Returns how many connections there are.
    pub fn connection_count(&self) -> usize {
        let conns = self.shared.conns.lock();
        conns.iter().filter(|conn| !conn.is_ended()).count()
    }

    /// Stops: no more calls are taken, those that are being done are done to their
    /// end, and all opens and locks end. One that is not done after three seconds goes on by
    /// itself. The volumes are left attached.
    ///
    /// # Errors
    /// What ended the server before.
    pub fn stop(mut self) -> io::Result<()> {
        self.stop_now()
    }

    fn stop_now(&mut self) -> io::Result<()> {
        // Closed, the pipe wakes the thread that listens.
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

/// Logs that a connection gives way to others.
fn sent_away(conn: &Conn) {
    let address = conn.address();
    let reason = "it gives way to others";
    warn!(target: "NFS", %address, reason, "connection sent away");
}

/// Tells of a server's end, when dropped, unless there is nobody to be told.
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
        // Whoever wants to know what ended it calls `stop`.
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
    /// Of a door that does not listen.
    fn listen(&self, doors: &[Door], woken: &OwnedFd) -> io::Result<()> {
        let mut ticked = timer::now();
        let mut exhausted = false;
        loop {
            // Without descriptors to accept with, doors are left for the next tick.
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
            // Interrupted or short of memory, it is tried again.
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

    /// Takes those who wait at a door, [`AT_ONCE`] at most; false if nothing can be accepted now.
    ///
    /// # Errors
    /// Of a door that does not listen.
    fn accept(&self, door: &Door) -> io::Result<bool> {
        for _ in 0..AT_ONCE {
            match door.listener.accept() {
                Ok((socket, peer)) => {
                    // One that cannot be had is the client's to try again.
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
        let programs = Arc::clone(&self.programs);
        let bounds = (self.limits, party, Arc::clone(&self.threads));
        conns.push(Conn::start(programs, bounds, way, socket)?);
        Ok(())
    }

    /// Returns whether there is room for one more connection of this party, once another has given way
    /// if it has to.
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

    /// Returns the connections that have not ended, the oldest first.
    fn open(&self) -> Vec<Arc<Conn>> {
        let mut open = self.conns.lock().clone();
        open.retain(|conn| !conn.is_ended());
        open
    }

    fn forget_ended(&self) {
        let mut conns = self.conns.lock();
        let ended: Vec<_> = conns.extract_if(.., |conn| conn.is_ended()).collect();
        drop(conns);
        // Their threads are at their end or about to come there.
        drop(ended);
    }
}

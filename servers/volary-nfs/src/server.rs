//! [`Server`]: listens, and keeps the connections.

use crate::conn::Conn;
use crate::options::{ExportOptions, Limits, ServeOptions, is_this_host};
use crate::owner::Owner;
use crate::programs::{Programs, Way};
use crate::timer;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use volary_session::Volume;

/// How often opens that nobody uses are looked for.
const TICK: Duration = Duration::from_secs(1);

/// A running server. Dropped, it stops.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// Written to, it wakes the thread that listens.
    wake: Option<OwnedFd>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    programs: Arc<Programs>,
    limits: Limits,
    conns: Mutex<Vec<Arc<Conn>>>,
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
        conns: Mutex::default(),
    });
    // Not for programs that are started meanwhile: they would hold it open.
    let (woken, wake) = pipe_with(PipeFlags::CLOEXEC)?;
    shared.programs.tell_of_restart();
    let listening = {
        let shared = Arc::clone(&shared);
        let thread = Builder::new().name("nfs listen".into());
        thread.spawn(move || shared.listen(&doors, &woken))?
    };
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
    /// Where it listens, with the ports that it was given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it answers with.
    pub fn programs(&self) -> &Arc<Programs> {
        &self.shared.programs
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        let conns = self.shared.conns.lock();
        conns.iter().filter(|conn| !conn.is_ended()).count()
    }

    /// Stops: no more calls are taken, those that are being done are done to their
    /// end, and all opens and locks end. The volumes are left attached.
    pub fn stop(mut self) {
        self.stop_now();
    }

    fn stop_now(&mut self) {
        // Closed, the pipe wakes the thread that listens.
        self.wake = None;
        if let Some(listening) = self.listening.take() {
            // A panic was counted where it happened.
            let _ = listening.join();
            for conn in self.shared.conns.lock().drain(..) {
                conn.join();
            }
            self.shared.programs.end();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_now();
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
    fn listen(&self, doors: &[Door], woken: &OwnedFd) {
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
                return;
            }
            exhausted = doors.iter().any(|door| !self.accept(door));
            if ticked.elapsed() >= TICK {
                ticked = timer::now();
                self.programs.tick();
                self.forget_ended();
            }
        }
    }

    /// Takes all who wait at a door; false if nothing can be accepted now.
    fn accept(&self, door: &Door) -> bool {
        loop {
            match door.listener.accept() {
                Ok((socket, peer)) => {
                    // One that cannot be had is the client's to try again.
                    let _ = self.take(door, socket, peer);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return false,
            }
        }
    }

    fn take(&self, door: &Door, socket: TcpStream, peer: SocketAddr) -> io::Result<()> {
        self.forget_ended();
        let mut conns = self.conns.lock();
        let theirs = conns.iter().filter(|c| c.way().peer.ip() == peer.ip());
        let too_many =
            !is_this_host(peer.ip()) && theirs.count() >= self.limits.connections_of_peer;
        let admitted = self.programs.admits(peer.ip());
        if too_many || !admitted || conns.len() >= self.limits.connections {
            return Ok(());
        }
        socket.set_nonblocking(false)?;
        let local = socket.local_addr().unwrap_or(door.local);
        let owner = match is_this_host(peer.ip()) {
            true => Owner::of(peer, local),
            false => Owner::Trusted,
        };
        let way = Way {
            peer,
            local,
            only_portmap: door.only_portmap,
            owner: Arc::new(owner),
        };
        let programs = Arc::clone(&self.programs);
        conns.push(Conn::start(programs, self.limits, way, socket)?);
        Ok(())
    }

    fn forget_ended(&self) {
        let mut conns = self.conns.lock();
        let ended: Vec<_> = conns.extract_if(.., |conn| conn.is_ended()).collect();
        drop(conns);
        // Their threads are at their end or about to come there.
        drop(ended);
    }
}

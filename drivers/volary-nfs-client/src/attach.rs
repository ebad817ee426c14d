//! From the name of an export to a volume: the portmapper, MOUNT, and what the
//! server says that it can do.

use crate::fail;
use crate::fs::Export;
use crate::hidden::HiddenFiles;
use crate::location::{Location, NfsOptions};
use crate::locks::Locks;
use crate::node::tick;
use crate::nodes::Nodes;
use crate::opens::Opens;
use crate::peer::{Call, Peer, Way};
use crate::proto::{Fattr, Fh, error_of, procedure, status, time};
use crate::record::RECORD_MAX;
use crate::volume::{Info, Room, Volume};
use crate::workers::Workers;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use volary_core::{Caps, Cred, Error, FileKind, Fs, Kind, Result};
use volary_rpc::numbers::{AUTH_SYS, GETPORT, MOUNT, NFS, NLM, NULL, PORTMAP, Program, TCP};
use volary_rpc::{Decoded, Input, Output};

/// Where NFS is if nobody says.
const NFS_PORT: u16 = 2049;
/// `MOUNTPROC3_…`.
const MNT: u32 = 1;
const UMNT: u32 = 3;
/// The most that one call reads or writes, in bytes.
const IO_MAX: usize = 1 << 20;
/// What a listing is asked for at once, in bytes.
const LIST_MAX: u32 = 64 << 10;
/// What a node that is known takes, about, in bytes.
const NODE_BYTES: u64 = 1024;
const NODES_MIN: u64 = 1024;
/// Of a name, when the server does not say.
const NAME_MAX: u16 = 255;

/// Attaches the export at `location`; what that says of options was taken into
/// `options` ([`NfsOptions::with`]).
///
/// # Errors
/// `NotFound` for a server whose name is not known, and for an export that there
/// is not; `Io` for one that cannot be reached; `Access` for an export that we may
/// not mount; `Unsupported` for a server without NFSv3, and for an export that
/// wants other credentials than `AUTH_SYS`; `NotDir` for one that is no directory;
/// `Corrupt`.
pub fn attach(location: &Location, options: &NfsOptions) -> Result<Fs> {
    let way = way_of(options);
    let whose = options.caller.map(|(uid, gid)| Cred::new(uid, gid));
    let caller = whose.clone().unwrap_or_else(own_cred);
    let host = addresses(location)?;
    let mut found = None;
    let mut first = None;
    for at in host {
        match Found::at(at, location, options, &way, &caller) {
            Ok(there) => {
                found = Some(there);
                break;
            }
            Err(e) => drop(first.get_or_insert(e)),
        }
    }
    let found = match (found, first) {
        (Some(found), _) => found,
        (None, Some(e)) => return Err(e),
        (None, None) => return Err(unknown(location)),
    };
    let volume = found.volume(options, way, &caller, whose)?;
    Ok(Arc::new(Export::new(Arc::new(volume))))
}

fn way_of(options: &NfsOptions) -> Way {
    let name = rustix::system::uname();
    Way {
        timeout: options.timeout,
        connections: options.connections,
        reserved: options.reserved && rustix::process::geteuid().is_root(),
        machine: name.nodename().to_bytes().into(),
    }
}

fn own_cred() -> Cred {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    Cred::new(uid.as_raw(), gid.as_raw())
}

fn unknown(location: &Location) -> Error {
    let words = format!(
        "no server is known as {}",
        volary_core::escape(location.host.as_bytes())
    );
    Error::note(Kind::NotFound, words)
}

/// Returns where the server may be; the ports are yet to be said.
fn addresses(location: &Location) -> Result<Vec<SocketAddr>> {
    let host = location.host.trim_start_matches('[').trim_end_matches(']');
    let all = (host, 0).to_socket_addrs().map_err(|_| unknown(location))?;
    Ok(all.collect())
}

/// Returns the numbers of calls begin where those of an earlier run are unlikely to be.
fn seed() -> u32 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanos = u32::try_from(clock.tv_nsec).unwrap_or_default();
    let secs = u32::try_from(clock.tv_sec & 0xffff_ffff).unwrap_or_default();
    nanos ^ secs.rotate_left(16) ^ std::process::id().rotate_left(24)
}

/// An export that was mounted.
struct Found {
    nfs: Arc<Peer>,
    lock: Option<Arc<Peer>>,
    /// Where MOUNT is, and the export's path: it is told when we leave.
    mount: SocketAddr,
    path: Vec<u8>,
    root: Fh,
}

impl Found {
    fn at(
        host: SocketAddr,
        location: &Location,
        options: &NfsOptions,
        way: &Way,
        caller: &Cred,
    ) -> Result<Self> {
        let at = |port| SocketAddr::new(host.ip(), port);
        let port_of = |program| ask_port(at(options.portmap), way, program);
        let given = options.port.or(location.port);
        let port = match given {
            Some(port) => port,
            None => port_of(NFS).ok().flatten().unwrap_or(NFS_PORT),
        };
        let nfs = Peer::new(at(port), way.clone(), seed());
        // A server that never was there is not waited for as one that restarts is.
        nfs.hurry();
        // Says whether anybody is there before the portmapper is asked in vain.
        nfs.call(&plain(NFS, NULL), |_| ())?;
        let mount = match (options.mount_port, given) {
            (Some(port), _) => port,
            (None, Some(port)) if has(&nfs, MOUNT) => port,
            _ => port_of(MOUNT)?.unwrap_or(port),
        };
        let root = mount_at(at(mount), way, caller, &location.export)?;
        let lock = if !options.locks || options.read_only {
            None
        } else if has(&nfs, NLM) {
            Some(port)
        } else if given.is_none() {
            port_of(NLM).ok().flatten()
        } else {
            None
        };
        let nfs = Arc::new(nfs);
        let lock = lock.map(|lock| {
            if lock == port {
                Arc::clone(&nfs)
            } else {
                Arc::new(Peer::new(at(lock), way.clone(), seed()))
            }
        });
        Ok(Self {
            nfs,
            lock,
            mount: at(mount),
            path: location.export.clone(),
            root,
        })
    }

    fn volume(
        self,
        options: &NfsOptions,
        way: Way,
        caller: &Cred,
        whose: Option<Cred>,
    ) -> Result<Volume> {
        let ask = Ask {
            peer: &self.nfs,
            cred: caller,
            fh: &self.root,
        };
        let asked = tick();
        let attr = ask.call(procedure::GETATTR, Fattr::read)?;
        if attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let mut info = ask.call(procedure::FSINFO, read_info)?;
        // A server may lack PATHCONF.
        let path = ask.call(procedure::PATHCONF, read_path);
        path.unwrap_or_default().add_to(&mut info.caps);
        if !options.read_only {
            info.caps = info.caps.with(Caps::WRITE);
        }
        if self.lock.is_some() {
            info.caps = info.caps.with(Caps::SHARED_LOCKS);
        }
        let room = options.memory / 4 / NODE_BYTES;
        let nodes = Nodes::new(usize::try_from(room.max(NODES_MIN)).unwrap_or(usize::MAX));
        let root_node = nodes.enter(self.root, &attr, asked)?;
        Ok(Volume {
            machine: way.machine.clone(),
            way,
            peer: self.nfs,
            mount: (self.mount, self.path),
            info,
            root: root_node.id,
            root_node,
            nodes,
            opens: Opens::default(),
            hidden: HiddenFiles::default(),
            locks: Locks::new(self.lock),
            workers: Workers::new((options.connections * 2).max(2)),
            naming: RwLock::new(()),
            dirty: Mutex::new(HashMap::new()),
            behind: AtomicUsize::new(0),
            ahead: AtomicUsize::new(0),
            room: Mutex::new(Room::default()),
            is_detached: AtomicBool::new(false),
            whose,
            options: options.clone(),
        })
    }
}

/// Returns a call of nobody's, without arguments.
fn plain(program: Program, procedure: u32) -> Call<'static> {
    Call {
        program,
        procedure,
        cred: None,
        cancel: None,
    }
}

/// Returns whether a program is at the port of another.
fn has(peer: &Peer, program: Program) -> bool {
    peer.call(&plain(program, NULL), |_| ()).is_ok()
}

/// Returns what a portmapper says of a program's port; `None` if it is not registered.
fn ask_port(at: SocketAddr, way: &Way, program: Program) -> Result<Option<u16>> {
    // Others than a portmapper are not asked from a reserved port for nothing.
    let way = Way {
        reserved: false,
        ..way.clone()
    };
    let peer = Peer::new(at, way, seed());
    peer.hurry();
    let done = peer.call(&plain(PORTMAP, GETPORT), |out| {
        for n in [program.number, program.version, TCP, 0] {
            out.u32(n);
        }
    })?;
    let port = done.results().u32().map_err(fail::garbage)?;
    let port = u16::try_from(port);
    let port = port.map_err(|_| fail::nonsense("port", "more than 65535", "a port"))?;
    Ok(Some(port).filter(|&port| port > 0))
}

/// MNT: the handle of an export's root.
fn mount_at(at: SocketAddr, way: &Way, cred: &Cred, path: &[u8]) -> Result<Fh> {
    let peer = Peer::new(at, way.clone(), seed());
    peer.hurry();
    let call = Call {
        cred: Some(cred),
        ..plain(MOUNT, MNT)
    };
    let done = peer.call(&call, |out| out.opaque(path))?;
    let mut input = done.results();
    let shown = volary_core::escape(path);
    match input.u32().map_err(fail::garbage)? {
        status::OK => {}
        status::NOENT => {
            let words = format!("{at} has no export {shown}");
            return Err(Error::note(Kind::NotFound, words));
        }
        13 | 1 => {
            let words = format!("{at} does not let us mount {shown}");
            return Err(Error::note(Kind::Access, words));
        }
        status => return Err(error_of(status)),
    }
    let read = |input: &mut Input<'_>| {
        /// More flavors than there are.
        const FLAVORS_MAX: usize = 64;
        let fh = Fh::read(input)?;
        let mut flavors = input.numbers(FLAVORS_MAX)?.peekable();
        let any = flavors.peek().is_none();
        Decoded::Ok((fh, any || flavors.any(|f| f == AUTH_SYS)))
    };
    let (fh, is_sys) = read(&mut input).map_err(fail::garbage)?;
    if !is_sys {
        let words = format!("{at} wants other credentials than AUTH_SYS for {shown}");
        return Err(Error::note(Kind::Unsupported, words));
    }
    Ok(fh)
}

impl Volume {
    /// UMNT: a courtesy, so that the server's list of mounts is right.
    pub(crate) fn unmount(&self) {
        let (at, path) = &self.mount;
        let peer = Peer::new(*at, self.way.clone(), seed());
        peer.hurry();
        let cred = self.whose.clone().unwrap_or_else(own_cred);
        let call = Call {
            cred: Some(&cred),
            ..plain(MOUNT, UMNT)
        };
        // A server that is gone knows without.
        let _ = peer.call(&call, |out| out.opaque(path));
    }
}

/// A call about the root, before there is a volume.
struct Ask<'a> {
    peer: &'a Peer,
    cred: &'a Cred,
    fh: &'a Fh,
}

impl Ask<'_> {
    fn call<T>(
        &self,
        procedure: u32,
        read: impl FnOnce(&mut Input<'_>) -> Decoded<T>,
    ) -> Result<T> {
        let call = Call {
            cred: Some(self.cred),
            ..plain(NFS, procedure)
        };
        let done = self
            .peer
            .call(&call, |out: &mut Output| self.fh.write(out))?;
        let mut input = done.results();
        match input.u32().map_err(fail::garbage)? {
            status::OK => read(&mut input).map_err(fail::garbage),
            status => Err(error_of(status)),
        }
    }
}

/// FSINFO (RFC 1813, section 3.3.19).
fn read_info(input: &mut Input<'_>) -> Decoded<Info> {
    const LINK: u32 = 0x01;
    const SYMLINK: u32 = 0x02;
    const SMALLEST: usize = 512;
    Fattr::read_maybe(input)?;
    let [read_max, _, _, write_max, _, _, list] = numbers(input)?;
    let size_max = input.u64()?;
    let step = time(input)?;
    let properties = input.u32()?;
    let bound = |said: u32| {
        let said = usize::try_from(said).unwrap_or(usize::MAX);
        // Whole pages, so that neither side has to put pieces together.
        let said = said.clamp(SMALLEST, IO_MAX.min(RECORD_MAX));
        if said > 4096 { said & !4095 } else { said }
    };
    let mut bits = Caps::MODES
        | Caps::HOLES
        | Caps::CASE_SENSITIVE
        | Caps::CASE_KEEPING
        | Caps::DEVICES
        | Caps::ANY_NAME
        | Caps::CHECKS_ACCESS;
    for (property, cap) in [(LINK, Caps::HARD_LINKS), (SYMLINK, Caps::SYMLINKS)] {
        if properties & property != 0 {
            bits |= cap;
        }
    }
    let secs = u64::try_from(step.secs).unwrap_or_default();
    Ok(Info {
        read_max: bound(read_max),
        write_max: bound(write_max),
        list_max: list.clamp(8192, LIST_MAX),
        caps: Caps {
            bits,
            name_max: NAME_MAX,
            // Past this, sizes are no numbers of any system.
            size_max: size_max.clamp(1, i64::MAX as u64),
            time_step: secs
                .saturating_mul(1_000_000_000)
                .saturating_add(step.nanos.into())
                .max(1),
        },
    })
}

fn numbers<const N: usize>(input: &mut Input<'_>) -> Decoded<[u32; N]> {
    let mut all = [0; N];
    for n in &mut all {
        *n = input.u32()?;
    }
    Ok(all)
}

/// PATHCONF (section 3.3.20).
struct Path {
    name_max: u32,
    folds_case: bool,
    keeps_case: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            name_max: NAME_MAX.into(),
            folds_case: false,
            keeps_case: true,
        }
    }
}

fn read_path(input: &mut Input<'_>) -> Decoded<Path> {
    Fattr::read_maybe(input)?;
    input.u32()?;
    let name_max = input.u32()?;
    input.bool()?;
    input.bool()?;
    Ok(Path {
        name_max,
        folds_case: input.bool()?,
        keeps_case: input.bool()?,
    })
}

impl Path {
    fn add_to(&self, caps: &mut Caps) {
        if self.folds_case {
            *caps = caps.without(Caps::CASE_SENSITIVE);
        }
        if !self.keeps_case {
            *caps = caps.without(Caps::CASE_KEEPING);
        }
        let name_max = u16::try_from(self.name_max).unwrap_or(NAME_MAX);
        caps.name_max = if name_max == 0 {
            NAME_MAX
        } else {
            name_max.min(NAME_MAX * 4)
        };
    }
}

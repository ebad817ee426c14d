//! Attaching an export, given its location.

use crate::attached::operations::{Attached, Mounted};
use crate::calls::export::Export;
use crate::known::attr_cache::tick;
use crate::location::{Location, NfsOptions};
use crate::opens::nlm::{Nlm, Whose};
use crate::server::info::Root;
use crate::server::mount::{Mount, ask_port, has, own_cred, seed};
use crate::server::peer::{Call, Peer, Way};
use crate::wire::proto::Fh;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use volary_core::{Caps, Cred, Error, FileKind, Fs, Kind, Result};
use volary_rpc::numbers::{MOUNT, NFS, NLM, NULL};

/// The port of NFS if neither the location nor the portmapper tells it.
const NFS_PORT: u16 = 2049;

/// Attaches the export at `location`. The location's own options must already be part of `options`
/// ([`NfsOptions::with`]).
///
/// # Errors
/// `NotFound` for a server whose name is unknown, and for an export that does not exist; `Io` for a
/// server that cannot be reached; `Access` for an export that we may not mount; `Unsupported` for a
/// server without NFSv3, and for an export that wants other credentials than `AUTH_SYS`; `NotDir`
/// for an export that is not a directory; `Corrupt`.
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
    let attached = found.attached(options, &way, &caller, whose)?;
    Ok(Arc::new(attached))
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

fn unknown(location: &Location) -> Error {
    let words = format!(
        "no server is known as {}",
        volary_core::escape(location.host.as_bytes())
    );
    Error::note(Kind::NotFound, words)
}

/// Returns the server's addresses; their ports are not yet known.
fn addresses(location: &Location) -> Result<Vec<SocketAddr>> {
    let host = location.host.trim_start_matches('[').trim_end_matches(']');
    let all = (host, 0).to_socket_addrs().map_err(|_| unknown(location))?;
    Ok(all.collect())
}

/// An export that has been mounted.
struct Found {
    nfs: Arc<Peer>,
    lock: Option<Arc<Peer>>,
    /// Kept to tell the server when we unmount.
    mount: Mount,
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
        // The first connection fails at once, and does not wait for a server that restarts.
        nfs.hurry();
        // Checks that the server answers before the portmapper is asked in vain.
        nfs.call(&Call::plain(NFS, NULL), |_| ())?;
        let mount = match (options.mount_port, given) {
            (Some(port), _) => port,
            (None, Some(port)) if has(&nfs, MOUNT) => port,
            _ => port_of(MOUNT)?.unwrap_or(port),
        };
        let mount = Mount::new(at(mount), location.export.clone(), way.clone());
        let root = mount.mount(caller)?;
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
            mount,
            root,
        })
    }

    /// Queries the server's capabilities, and attaches the export.
    fn attached(
        self,
        options: &NfsOptions,
        way: &Way,
        caller: &Cred,
        whose: Option<Cred>,
    ) -> Result<Attached> {
        let root = Root {
            peer: &self.nfs,
            cred: caller,
            fh: &self.root,
        };
        let asked = tick();
        let attr = root.attr()?;
        if attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let mut info = root.info()?;
        if !options.read_only {
            info.caps = info.caps.with(Caps::WRITE);
        }
        if self.lock.is_some() {
            info.caps = info.caps.with(Caps::SHARED_LOCKS);
        }
        let whose_locks = Whose::new(way.machine.clone())?;
        let mounted = Mounted {
            export: Export::new(self.nfs, options.timeout, options.read_only),
            nlm: self.lock.map(|peer| Nlm::new(peer, whose_locks)),
            mount: self.mount,
            root: (self.root, attr, asked),
            info,
        };
        Attached::new(mounted, options, whose)
    }
}

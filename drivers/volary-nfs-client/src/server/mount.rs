//! The other programs of a server: the portmapper, and MOUNT.

use crate::fail;
use crate::server::peer::{Call, Done, Peer, Way};
use crate::wire::proto::{Fh, error_of, status};
use std::net::SocketAddr;
use volary_core::{Cred, Error, Kind, Result};
use volary_rpc::numbers::{AUTH_SYS, GETPORT, MOUNT, NULL, PORTMAP, Program, TCP};
use volary_rpc::{Decoded, Input};

/// `MOUNTPROC3_…`.
const MNT: u32 = 1;
const UMNT: u32 = 3;

/// Returns the first number for calls, which is unlikely to collide with those of an earlier run.
pub(crate) fn seed() -> u32 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanos = u32::try_from(clock.tv_nsec).unwrap_or_default();
    let secs = u32::try_from(clock.tv_sec & 0xffff_ffff).unwrap_or_default();
    nanos ^ secs.rotate_left(16) ^ std::process::id().rotate_left(24)
}

/// Returns the credentials of this process.
pub(crate) fn own_cred() -> Cred {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    Cred::new(uid.as_raw(), gid.as_raw())
}

/// Returns whether the port of `peer` serves this program too.
pub(crate) fn has(peer: &Peer, program: Program) -> bool {
    peer.call(&Call::plain(program, NULL), |_| ()).is_ok()
}

/// Asks a portmapper for a program's port; `None` if it is not registered.
pub(crate) fn ask_port(at: SocketAddr, way: &Way, program: Program) -> Result<Option<u16>> {
    // A portmapper needs no reserved port, which are scarce.
    let way = Way {
        reserved: false,
        ..way.clone()
    };
    let peer = Peer::new(at, way, seed());
    peer.hurry();
    let done = peer.call(&Call::plain(PORTMAP, GETPORT), |out| {
        for n in [program.number, program.version, TCP, 0] {
            out.u32(n);
        }
    })?;
    let port = done.results().u32().map_err(fail::garbage)?;
    let port = u16::try_from(port);
    let port = port.map_err(|_| fail::nonsense("port", "more than 65535", "a port"))?;
    Ok(Some(port).filter(|&port| port > 0))
}

/// An export, under the name by which MOUNT knows it.
pub(crate) struct Mount {
    at: SocketAddr,
    path: Vec<u8>,
    way: Way,
}

impl Mount {
    /// Makes an export whose MOUNT program is at `at`.
    pub(crate) fn new(at: SocketAddr, path: Vec<u8>, way: Way) -> Self {
        Self { at, path, way }
    }

    /// Makes a call of MOUNT.
    fn call(&self, procedure: u32, cred: &Cred) -> Result<Done> {
        let peer = Peer::new(self.at, self.way.clone(), seed());
        peer.hurry();
        let call = Call {
            cred: Some(cred),
            ..Call::plain(MOUNT, procedure)
        };
        peer.call(&call, |out| out.opaque(&self.path))
    }

    /// Calls UMNT: a courtesy, so that the server's list of mounts is right.
    pub(crate) fn unmount(&self, cred: &Cred) {
        // A server that cannot be reached does not need it.
        let _ = self.call(UMNT, cred);
    }

    /// Calls MNT. Returns the handle of the export's root.
    pub(crate) fn mount(&self, cred: &Cred) -> Result<Fh> {
        let at = self.at;
        let done = self.call(MNT, cred)?;
        let mut input = done.results();
        let shown = volary_core::escape(&self.path);
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
}

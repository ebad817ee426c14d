//! Calls to a client's own programs, such as the one that tells its lock manager that it now has a
//! lock.

use super::wanted::{OBJECT_MAX, Wanted};
use crate::rpc::record::{Patience, Records};
use rustix::net::{AddressFamily, SocketType, bind, connect, ipproto, sockopt};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;
use volary_rpc::numbers::{GETPORT, LAST_FRAGMENT, NLM, PORTMAP, Program, TCP};
use volary_rpc::{Input, Output, caller};
use volary_session::LockKind;

/// How long one step may take.
const STEP: Duration = Duration::from_secs(5);
const GRANTED: u32 = 5;

/// Tells the client that it now has the lock. Returns whether it was reached and accepts the lock.
/// Its portmapper is asked at `portmap_port`.
pub(super) fn tell(want: &Wanted, kind: LockKind, portmap_port: u16) -> bool {
    try_tell(want, kind, portmap_port).unwrap_or(false)
}

fn try_tell(want: &Wanted, kind: LockKind, portmap_port: u16) -> Option<bool> {
    let way = Back {
        from: want.server,
        to: want.owner.client.peer,
        portmap_port,
    };
    let answer = ask_program(&way, NLM, GRANTED, |out| {
        out.opaque(b"");
        out.bool(kind == LockKind::Exclusive);
        want.write(out);
    })?;
    let mut answer = Input::new(&answer);
    answer.opaque(OBJECT_MAX).ok()?;
    Some(answer.u32().ok()? == 0)
}

/// The addresses of a call to a client.
pub(super) struct Back {
    /// The server's address that the client called: clients accept no call from another.
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) portmap_port: u16,
}

impl Back {
    fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let family = match self.to {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        let fd = socket(family)?;
        // The send timeout also limits connecting.
        for way in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
            sockopt::set_socket_timeout(&fd, way, Some(STEP))?;
        }
        // If this host no longer has the address, the kernel chooses another one.
        let _ = bind(&fd, &SocketAddr::new(self.from, 0));
        connect(&fd, &SocketAddr::new(self.to, port))?;
        Ok(TcpStream::from(fd))
    }
}

/// Returns a socket that child programs do not inherit.
#[cfg(target_os = "linux")]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    Ok(fd)
}

/// Returns a socket that later child programs do not inherit.
#[cfg(not(target_os = "linux"))]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let fd = rustix::net::socket(family, SocketType::STREAM, Some(ipproto::TCP))?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

/// Calls a program of a client, and returns the results. The client's portmapper is asked for the
/// program's port.
pub(super) fn ask_program(
    way: &Back,
    program: Program,
    procedure: u32,
    write: impl FnOnce(&mut Output),
) -> Option<Vec<u8>> {
    let port = ask(way, way.portmap_port, PORTMAP, GETPORT, |out| {
        for n in [program.number, program.version, TCP, 0] {
            out.u32(n);
        }
    })?;
    let port = u16::try_from(Input::new(&port).u32().ok()?).ok()?;
    if port == 0 {
        return None;
    }
    ask(way, port, program, procedure, write)
}

/// Makes one call, and returns the results.
fn ask(
    way: &Back,
    port: u16,
    program: Program,
    procedure: u32,
    write: impl FnOnce(&mut Output),
) -> Option<Vec<u8>> {
    const XID: u32 = 1;
    let mut out = Output::new();
    out.u32(0);
    caller::call(&mut out, XID, program, procedure, None);
    write(&mut out);
    out.patch(0, LAST_FRAGMENT | u32::try_from(out.len() - 4).ok()?);
    let mut stream = way.connect(port).ok()?;
    stream.write_all(out.bytes()).ok()?;
    let patience = Patience {
        idle: STEP,
        record: STEP,
        len_max: 4096,
    };
    let mut record = Vec::new();
    let len = Records::new()
        .read(&mut stream, &patience, &mut record, |_| ())
        .ok()??;
    match caller::reply(record.get(..len)?).ok()? {
        (XID, caller::Reply::Done(answer)) => Some(answer.rest().to_vec()),
        _ => None,
    }
}

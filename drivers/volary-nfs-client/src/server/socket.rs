//! Connections to a server, from a reserved port if necessary.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, ipproto, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a thread waits at a time: for a read, a write or another thread's read. Then it checks
/// whether the call was cancelled or is late.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(250);
/// The ports that only root may use, except those of well-known services.
const RESERVED: std::ops::RangeInclusive<u16> = 665..=1023;

/// Connects to `at`. Uses the port `before` if possible, by which the server recognizes calls that
/// were sent again.
///
/// # Errors
/// `TimedOut` at `until`; those of the socket.
pub(crate) fn connect_to(
    at: SocketAddr,
    before: Option<u16>,
    reserved: bool,
    until: Instant,
) -> io::Result<TcpStream> {
    let again = before.and_then(|port| begin(at, Some(port)).ok());
    let fd = match again {
        Some(fd) => fd,
        None if reserved => from_reserved(at)?,
        None => begin(at, None)?,
    };
    wait(&fd, until)?;
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_UP))?;
    // A write is repeated after this time, so that the caller can read meanwhile; see `Conn::send`.
    stream.set_write_timeout(Some(LOOK_UP))?;
    Ok(stream)
}

/// Closes a connection without TIME_WAIT, so that its port can be used again at once.
pub(crate) fn forsake(stream: &TcpStream) {
    // If this fails, the next connection is from another port.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Connects from a reserved port if one is free, and otherwise from any port.
fn from_reserved(at: SocketAddr) -> io::Result<OwnedFd> {
    let start = std::process::id();
    let count = u32::from(RESERVED.end() - RESERVED.start()) + 1;
    for step in 0..count {
        let offset = start.wrapping_add(step) % count;
        let port = u16::try_from(offset).unwrap_or_default() + RESERVED.start();
        match begin(at, Some(port)) {
            Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) => {}
            Err(Errno::ACCESS | Errno::PERM) => break,
            begun => return Ok(begun?),
        }
    }
    Ok(begin(at, None)?)
}

/// Returns a socket that has begun to connect.
fn begin(at: SocketAddr, from: Option<u16>) -> Result<OwnedFd, Errno> {
    let (family, any): (_, IpAddr) = match at {
        SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let fd = socket(family)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    if let Some(port) = from {
        // Allows a port that another connection used a moment ago.
        sockopt::set_socket_reuseaddr(&fd, true)?;
        bind(&fd, &SocketAddr::new(any, port))?;
    }
    match connect(&fd, &at) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e),
    }
}

/// Returns a socket that child programs do not inherit.
#[cfg(target_os = "linux")]
fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
}

/// Returns a socket that later child programs do not inherit.
#[cfg(not(target_os = "linux"))]
fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let fd = rustix::net::socket(family, SocketType::STREAM, Some(ipproto::TCP))?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

fn wait(fd: &OwnedFd, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(crate::timer::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(sockopt::socket_error(fd)??),
            Err(e) => return Err(e.into()),
        }
    }
}

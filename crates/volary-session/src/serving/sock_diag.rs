//! Asks the kernel for the owner of the socket at the other end of a connection from this host
//! (`sock_diag(7)`, `inet_diag`).

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
    sockopt,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const IPPROTO_TCP: u8 = 6;
/// Lengths of `nlmsghdr` and `inet_diag_req_v2`; the offset of `inet_diag_sockid` in the latter.
const HEAD_LEN: usize = 16;
const REQUEST_LEN: usize = 56;
const REQUEST_ID: usize = HEAD_LEN + 8;
/// Offsets of `idiag_uid` and `idiag_inode` in `inet_diag_msg`.
const UID: usize = HEAD_LEN + 64;
const INODE: usize = HEAD_LEN + 68;
/// How long to wait for the kernel, which normally answers within the call that asks.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the owner of the TCP socket at `peer` that is connected to `local`. `None` if this host
/// has no such socket, or no process has it open any more: the kernel would then name root.
///
/// # Errors
/// If the kernel does not tell.
pub fn socket_owner(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        flags,
        Some(SOCK_DIAG),
    )?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(peer, local), SendFlags::empty(), &kernel)?;
    let mut reply = [0; 512];
    let (len, _) = recv(&socket, &mut reply, RecvFlags::empty())?;
    parse(reply.get(..len).unwrap_or_default())
}

/// Builds an `nlmsghdr` and an `inet_diag_req_v2` for one socket: any state, any interface, any
/// cookie.
fn request(peer: SocketAddr, local: SocketAddr) -> [u8; HEAD_LEN + REQUEST_LEN] {
    let mut bytes = [0; HEAD_LEN + REQUEST_LEN];
    let mut put = |at: usize, field: &[u8]| {
        let place = bytes.get_mut(at..at + field.len());
        if let Some(place) = place {
            place.copy_from_slice(field);
        }
    };
    let family = match (peer.ip().to_canonical(), local.ip().to_canonical()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AddressFamily::INET,
        _ => AddressFamily::INET6,
    };
    let len = (HEAD_LEN + REQUEST_LEN) as u32;
    put(0, &native(len.to_le_bytes()));
    put(4, &native(BY_FAMILY.to_le_bytes()));
    put(6, &native(NLM_F_REQUEST.to_le_bytes()));
    put(HEAD_LEN, &[family.as_raw() as u8, IPPROTO_TCP]);
    put(HEAD_LEN + 4, &[0xFF; 4]);
    put(REQUEST_ID, &peer.port().to_be_bytes());
    put(REQUEST_ID + 2, &local.port().to_be_bytes());
    for (at, address) in [(4, peer), (20, local)] {
        match address.ip().to_canonical() {
            IpAddr::V4(v4) => put(REQUEST_ID + at, &v4.octets()),
            IpAddr::V6(v6) => put(REQUEST_ID + at, &v6.octets()),
        }
    }
    put(REQUEST_ID + 40, &[0xFF; 8]);
    bytes
}

/// Converts a number's bytes from little-endian to the host's order.
fn native<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Reads the kernel's answer.
///
/// # Errors
/// An error of the kernel, unless it is about a missing socket; a malformed answer.
fn parse(reply: &[u8]) -> io::Result<Option<u32>> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "no answer of sock_diag");
    let field = |at: usize| -> io::Result<[u8; 4]> {
        let bytes = reply.get(at..at + 4).ok_or_else(short)?;
        bytes.try_into().map(native).map_err(|_| short())
    };
    let kind = reply.get(4..6).ok_or_else(short)?;
    match u16::from_le_bytes(native(kind.try_into().map_err(|_| short())?)) {
        NLMSG_ERROR => {
            let errno = i32::from_le_bytes(field(HEAD_LEN)?).saturating_neg();
            match io::Error::from_raw_os_error(errno) {
                e if e.kind() == io::ErrorKind::NotFound => Ok(None),
                e => Err(e),
            }
        }
        BY_FAMILY => {
            // The kernel reads the owner first. If the socket has an inode after that, a process
            // had it open when the owner was read.
            let (uid, inode) = (u32::from_le_bytes(field(UID)?), field(INODE)?);
            Ok(Some(uid).filter(|_| inode != [0; 4]))
        }
        _ => Err(short()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn owner(server: &TcpStream) -> io::Result<Option<u32>> {
        socket_owner(server.peer_addr().unwrap(), server.local_addr().unwrap())
    }

    #[test]
    fn a_socket_is_its_owner_s() {
        let me = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (_client, server) = pair(address);
            assert_eq!(owner(&server).unwrap(), Some(me), "{address}");
        }
    }

    #[test]
    fn a_mapped_address_is_the_same_socket() {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let me = rustix::process::geteuid().as_raw();
        assert_eq!(owner(&server).unwrap(), Some(me));
    }

    #[test]
    fn a_socket_that_was_closed_is_nobody_s() {
        use std::io::Write;
        let (mut client, server) = pair("127.0.0.1:0");
        // Unread bytes keep the other end of the connection in the kernel's table.
        client.write_all(&[0; 100]).unwrap();
        drop(client);
        assert_eq!(owner(&server).unwrap(), None);
        let gone: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(
            socket_owner(gone, server.local_addr().unwrap()).unwrap(),
            None
        );
    }

    #[test]
    fn answers_that_are_none_are_errors() {
        assert!(parse(&[]).is_err());
        assert!(parse(&[0; 80]).is_err());
        let mut reply = [0; 100];
        reply[4] = 20;
        assert_eq!(parse(&reply).unwrap(), None);
        reply[INODE] = 1;
        // The same in either byte order.
        reply[UID..UID + 4].fill(7);
        assert_eq!(parse(&reply).unwrap(), Some(0x0707_0707));
        assert!(parse(&reply[..70]).is_err());
    }
}

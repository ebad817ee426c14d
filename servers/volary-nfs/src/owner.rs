//! Who is at the other end of a connection from this host: the owner of its socket, as the
//! kernel knows them (`sock_diag(7)`, `inet_diag`).
//!
//! The kernel's own NFS client is root's, and speaks for all users of its mounts. A program of
//! an ordinary user speaks for that user only.

use crate::options::Database;
use crate::rpc::Auth;
use nix::unistd::{Gid, Uid, User, getgrouplist};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
    sockopt,
};
use std::ffi::CString;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;
use volary_core::Cred;

/// Whose word a connection's calls are.
#[derive(Debug)]
pub enum Owner {
    /// That of another host, of root of this one, or of who runs this server: what a call says
    /// of who calls is believed.
    Trusted,
    /// That of an ordinary user of this host: all calls are theirs.
    User(u32, OnceLock<Cred>, Database),
    /// Nobody knows: all calls are the anonymous user's.
    Unknown,
}

impl Owner {
    /// The owner of the socket at `peer`, this host's own address, that is connected to `local`.
    /// Where the kernel does not tell owners, a port below 1024 is root's. Beside root, the user
    /// `believed` is.
    pub(crate) fn of(
        peer: SocketAddr,
        local: SocketAddr,
        believed: u32,
        database: &Database,
    ) -> Self {
        match uid_of(peer, local) {
            Ok(Some(uid)) if uid == 0 || uid == believed => Self::Trusted,
            Ok(Some(uid)) => Self::User(uid, OnceLock::new(), database.clone()),
            Err(_) if is_privileged(peer.port()) => Self::Trusted,
            Ok(None) | Err(_) => Self::Unknown,
        }
    }

    /// Who makes a call that says this of it. A user has no groups but those that the host's
    /// database of users gives them.
    pub(crate) fn caller(&self, said: &Auth) -> Caller {
        let Auth::Sys(said) = said else {
            return Caller::Nobody;
        };
        match self {
            Self::Trusted => Caller::Said(said.clone()),
            Self::User(uid, cred, database) => {
                let real = cred.get_or_init(|| database.cred_of(*uid));
                Caller::Known(within(said, real))
            }
            Self::Unknown => Caller::Nobody,
        }
    }
}

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// By their own word.
    Said(Cred),
    /// By the kernel's.
    Known(Cred),
    Nobody,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(cred) => write!(f, "uid {}, by its own word", cred.uid),
            Self::Known(cred) => write!(f, "uid {}", cred.uid),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}

/// `said`, if it is `real` with some of its groups; else `real`.
fn within(said: &Cred, real: &Cred) -> Cred {
    if said.uid != real.uid {
        return real.clone();
    }
    let is_real = |gid: &u32| *gid == real.gid || real.groups.contains(gid);
    Cred {
        uid: real.uid,
        gid: Some(said.gid).filter(is_real).unwrap_or(real.gid),
        groups: said.groups.iter().copied().filter(is_real).collect(),
    }
}

/// A user with their groups, as the host's database of users has them; one whom it does not know
/// is in a group of their number.
pub fn cred_of(uid: u32) -> Cred {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else {
        return Cred::new(uid, uid);
    };
    let groups = CString::new(user.name)
        .map(|name| getgrouplist(&name, user.gid).unwrap_or_default())
        .unwrap_or_default();
    Cred {
        uid,
        gid: user.gid.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
    }
}

/// Whether only root may listen at or call from this port.
fn is_privileged(port: u16) -> bool {
    let start = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let start = start.ok().and_then(|text| text.trim().parse().ok());
    port < start.unwrap_or(1024_u16).min(1024)
}

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const IPPROTO_TCP: u8 = 6;
/// Lengths of `nlmsghdr` and of `inet_diag_req_v2`; where the latter has its `inet_diag_sockid`.
const HEAD_LEN: usize = 16;
const REQUEST_LEN: usize = 56;
const REQUEST_ID: usize = HEAD_LEN + 8;
/// Where `inet_diag_msg` has `idiag_uid` and `idiag_inode`.
const UID: usize = HEAD_LEN + 64;
const INODE: usize = HEAD_LEN + 68;
/// How long the kernel may take; it answers within the call that asks.
const PATIENCE: Duration = Duration::from_secs(1);

/// The owner of the TCP socket at `peer` that is connected to `local`. `None` if there is no
/// such socket, or no process has it any more: the kernel calls such a one root's.
///
/// # Errors
/// If the kernel does not tell.
fn uid_of(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
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

/// `nlmsghdr` and `inet_diag_req_v2`, for one socket: any state, any interface, any cookie.
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

/// Bytes of a number in the host's order, from little-endian ones.
fn native<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// What the kernel answered.
///
/// # Errors
/// An error of the kernel other than that there is no such socket; an answer that is none.
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
            // The kernel reads the owner first. A socket that has an inode after that was some
            // process's when its owner was read.
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
        uid_of(server.peer_addr().unwrap(), server.local_addr().unwrap())
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
        // What was not read keeps the kernel's end of it there.
        client.write_all(&[0; 100]).unwrap();
        drop(client);
        assert_eq!(owner(&server).unwrap(), None);
        let gone: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(uid_of(gone, server.local_addr().unwrap()).unwrap(), None);
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

    #[test]
    fn a_user_has_no_more_groups_than_the_host_gives_them() {
        let cred = |uid, gid, groups: &[u32]| Cred {
            uid,
            gid,
            groups: groups.into(),
        };
        let real = cred(1000, 100, &[100, 27]);
        assert_eq!(within(&cred(0, 0, &[]), &real), real);
        assert_eq!(
            within(&cred(1000, 6, &[6, 27]), &real),
            cred(1000, 100, &[27])
        );
        assert_eq!(within(&cred(1000, 27, &[]), &real), cred(1000, 27, &[]));
        let root = cred_of(0);
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(
            cred_of(3_999_999_999),
            Cred::new(3_999_999_999, 3_999_999_999)
        );
    }
}

//! [`Party`]: the owner of a connection, for fair shares.

use crate::serving::clients::is_this_host;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The party to whose share a connection counts when there is not enough for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// Another host, by its address; for IPv6 by the first 64 bits, as one host can use all
    /// addresses that share them. Also this host, as 127.0.0.1, if the kernel does not tell the
    /// user.
    Host(IpAddr),
    /// A user of this host.
    User(u32),
}

impl Party {
    /// Returns the party at `peer`; `told` is the socket's owner, if the kernel gave one.
    pub fn of(peer: IpAddr, told: &io::Result<Option<u32>>) -> Self {
        match (is_this_host(peer), told) {
            (true, Ok(Some(uid))) => Self::User(*uid),
            _ => Self::Host(network_of(peer)),
        }
    }
}

/// Returns the address that stands for a client's network. The last 64 bits of an IPv6 address are
/// cleared, since a client can choose them. All addresses of this host become 127.0.0.1, since a
/// client on it can choose any of them.
pub fn network_of(address: IpAddr) -> IpAddr {
    if is_this_host(address) {
        return Ipv4Addr::LOCALHOST.into();
    }
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_is_a_host_or_a_user_of_this_one() {
        let of = |ip: &str, told| Party::of(ip.parse().unwrap(), &told);
        let host = |ip: &str| Party::Host(ip.parse().unwrap());
        assert_eq!(of("127.0.0.1", Ok(Some(7))), Party::User(7));
        assert_eq!(of("::1", Ok(Some(7))), Party::User(7));
        for own in ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.1.1.1"] {
            assert_eq!(of(own, Ok(None)), host("127.0.0.1"));
            assert_eq!(of(own, Err(io::Error::other("?"))), host("127.0.0.1"));
        }
        assert_eq!(of("10.0.0.1", Ok(Some(7))), host("10.0.0.1"));
        assert_eq!(of("::ffff:10.0.0.1", Ok(None)), host("10.0.0.1"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6", Ok(None)), host("2001:db8:1:2::"));
    }
}

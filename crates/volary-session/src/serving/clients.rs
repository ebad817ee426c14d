//! For servers: which client addresses are admitted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use volary_core::{Error, Kind, Result};

/// Addresses of clients: a single one, or a network (`192.168.1.0/24`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    address: IpAddr,
    bits: u32,
}

impl Clients {
    /// Returns whether this address is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        fn same(a: u128, b: u128, len: u32, bits: u32) -> bool {
            bits == 0 || (a ^ b) >> (len - bits) == 0
        }
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let number = |ip: Ipv4Addr| u128::from(ip.to_bits());
                same(number(a), number(b), 32, self.bits)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128, self.bits),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Clients {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            let words = format!("{text}: not an address, nor a network as 192.168.1.0/24");
            Error::note(Kind::Invalid, words)
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let len = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => len,
            Some(bits) => bits.parse().ok().filter(|&b| b <= len).ok_or_else(bad)?,
        };
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Returns whether an address is a loopback address of this host.
pub fn is_this_host(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6 == Ipv6Addr::LOCALHOST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_told_by_how_they_begin() {
        let has = |net: &str, ip: &str| net.parse::<Clients>().unwrap().has(ip.parse().unwrap());
        assert!(has("192.168.1.0/24", "192.168.1.77"));
        assert!(!has("192.168.1.0/24", "192.168.2.1"));
        assert!(has("192.168.1.7", "::ffff:192.168.1.7"));
        assert!(has("0.0.0.0/0", "8.8.8.8") && !has("0.0.0.0/0", "::1"));
        assert!(has("fe80::/10", "fe80::1") && !has("fe80::/10", "fc00::1"));
        assert!(has("::/0", "fc00::1"));
        for bad in ["", "1.2.3.4/33", "1.2.3/8", "host", "::/129", "1.2.3.4/"] {
            assert!(bad.parse::<Clients>().is_err(), "{bad}");
        }
    }
}

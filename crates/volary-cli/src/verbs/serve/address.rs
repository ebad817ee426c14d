//! Where to listen, and who may be served there.

use crate::exit::{Done, Exit, Fail, words};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where NFS is served unless told otherwise.
pub(super) const DEFAULT: &str = "127.0.0.1:2049";
const PORT: u16 = 2049;
const PORTMAPPER: u16 = 111;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listen {
    pub(super) address: SocketAddr,
    pub(super) portmap: bool,
}

impl Listen {
    /// From `ADDRESS`, `PORT` or `ADDRESS:PORT`.
    ///
    /// # Errors
    /// Of the command line.
    pub(super) fn parse(text: &str) -> Done<Self> {
        let address = address("--nfs", text, PORT)?;
        Ok(Self {
            address,
            portmap: false,
        })
    }

    /// Whether others than this host may be served as asked.
    ///
    /// # Errors
    /// Of the command line.
    pub(super) fn check(&self, allowed: bool, known: bool) -> Done {
        if self.address.ip().is_loopback() || (allowed && known) {
            return Ok(());
        }
        let missing = match (allowed, known) {
            (false, false) => "--allow CLIENTS and --i-know-auth-sys",
            (false, true) => "--allow CLIENTS",
            _ => "--i-know-auth-sys",
        };
        Err(Fail::usage(format!(
            "{}: others than this host can reach this address, and NFS believes what a client \
             says about who calls; to serve it all the same, add {missing}",
            self.address
        )))
    }

    /// Returns where the portmapper is asked.
    pub(super) fn portmapper(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), PORTMAPPER)
    }

    /// Why it cannot be listened there, in one line.
    pub(super) fn failed(&self, e: &io::Error) -> Fail {
        let advice = match e.kind() {
            io::ErrorKind::AddrInUse => "; is it served already? another port: --nfs PORT",
            io::ErrorKind::AddrNotAvailable => "; that is no address of this host",
            io::ErrorKind::PermissionDenied => "; ports below 1024 are root's",
            io::ErrorKind::InvalidInput => "",
            _ => "; NFS cannot be served there",
        };
        Fail::new(Exit::Failed, format!("{}{advice}", words(e)))
    }
}

/// Returns an address from `ADDRESS`, `PORT` or `ADDRESS:PORT`, for an option.
///
/// # Errors
/// Of the command line.
pub(super) fn address(option: &str, text: &str, port: u16) -> Done<SocketAddr> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let text = text
        .strip_prefix("localhost")
        .map_or_else(|| text.to_string(), |rest| format!("{here}{rest}"));
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse();
    let number = text.strip_prefix(':').unwrap_or(&text).parse();
    match (text.parse(), number, alone) {
        (Ok(address), _, _) => Ok(address),
        (_, Ok(port), _) => Ok(SocketAddr::new(here, port)),
        (_, _, Ok(ip)) => Ok(SocketAddr::new(ip, port)),
        _ => Err(Fail::usage(format!(
            "{option}: '{}' is not an address; write 127.0.0.1:{port}",
            volary::escape(text.as_bytes())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_many_ways() {
        for (text, address) in [
            ("3049", "127.0.0.1:3049"),
            (":3049", "127.0.0.1:3049"),
            ("127.0.0.1", "127.0.0.1:2049"),
            ("localhost", "127.0.0.1:2049"),
            ("localhost:0", "127.0.0.1:0"),
            ("10.0.0.1:5", "10.0.0.1:5"),
            ("::1", "[::1]:2049"),
            ("[::1]", "[::1]:2049"),
            ("[::1]:7", "[::1]:7"),
        ] {
            let parsed = Listen::parse(text).unwrap();
            assert_eq!(parsed.address, address.parse().unwrap(), "{text}");
        }
        for bad in ["", "host", "1.2.3", "127.0.0.1:x", "65536", "disk.img"] {
            assert!(Listen::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn others_are_served_only_by_one_who_knows() {
        let here = Listen::parse("127.0.0.1").unwrap();
        assert!(here.check(false, false).is_ok());
        for address in ["0.0.0.0", "192.168.1.1:2049", "::"] {
            let listen = Listen::parse(address).unwrap();
            for (allowed, known) in [(false, false), (true, false), (false, true)] {
                assert!(listen.check(allowed, known).is_err(), "{address}");
            }
            assert!(listen.check(true, true).is_ok());
        }
    }
}

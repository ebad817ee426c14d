//! The portmapper's answers about this server's programs: version 2 (RFC 1833, section 3), and
//! GETADDR of versions 3 and 4. Nothing can be registered.

use super::mount;
use super::programs::Programs;
use crate::rpc::call::Call;
use crate::rpc::message::Refusal;
use crate::{nfs, nlm};
use std::net::{IpAddr, SocketAddr};
use volary_rpc::{Decoded, Input, Output};

pub(crate) const PROGRAM: u32 = 100_000;
pub(crate) const LOW: u32 = 2;
pub(crate) const HIGH: u32 = 4;

const TCP: u32 = 6;
/// Longest `netid`, address and owner that are accepted.
const STRING_MAX: usize = 128;

/// The programs and versions that can be found.
const PROGRAMS: [(u32, u32); 5] = [
    (PROGRAM, 2),
    (nfs::PROGRAM, nfs::VERSION),
    (mount::PROGRAM, mount::VERSION),
    (nlm::PROGRAM, nlm::VERSION),
    (nlm::nsm::PROGRAM, nlm::nsm::VERSION),
];

impl Programs {
    /// Answers one call to the portmapper.
    pub(crate) fn portmap(
        &self,
        call: &Call,
        version: u32,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        let port = self.port().unwrap_or(call.local.port());
        match (version, call.procedure) {
            (_, 0) => {}
            (2, 3) => get_port(port, input, out)?,
            (2, 4) => dump(port, out),
            (3 | 4, 3) => {
                let address = SocketAddr::new(call.local.ip(), port);
                get_address(address, input, out)?;
            }
            // SET and UNSET: nothing was set.
            (_, 1 | 2) => out.bool(false),
            _ => return Err(Refusal::NoProcedure),
        }
        Ok(())
    }
}

fn has(program: u32, version: u32) -> bool {
    PROGRAMS.contains(&(program, version))
}

fn get_port(port: u16, input: &mut Input<'_>, out: &mut Output) -> Decoded<()> {
    let (program, version, protocol) = (input.u32()?, input.u32()?, input.u32()?);
    let found = protocol == TCP && has(program, version);
    out.u32(if found { port.into() } else { 0 });
    Ok(())
}

fn dump(port: u16, out: &mut Output) {
    for (program, version) in PROGRAMS {
        out.bool(true);
        for n in [program, version, TCP, port.into()] {
            out.u32(n);
        }
    }
    out.bool(false);
}

/// Answers GETADDR with an address in the form `h1.h2.h3.h4.p1.p2` (RFC 5665), or an empty one.
fn get_address(at: SocketAddr, input: &mut Input<'_>, out: &mut Output) -> Decoded<()> {
    let (program, version) = (input.u32()?, input.u32()?);
    let net = input.opaque(STRING_MAX)?;
    input.opaque(STRING_MAX)?;
    input.opaque(STRING_MAX)?;
    let own: &[u8] = match at.ip() {
        IpAddr::V4(_) => b"tcp",
        IpAddr::V6(_) => b"tcp6",
    };
    let found = net == own && has(program, version);
    let [high, low] = at.port().to_be_bytes();
    let address = format!("{}.{high}.{low}", at.ip());
    out.opaque(if found { address.as_bytes() } else { b"" });
    Ok(())
}

//! [`Wanted`]: a requested lock, and [`Place`]: the file it is for.

use super::state::Client;
use crate::exports::export::Export;
use crate::exports::fh;
use crate::rpc::call::Call;
use std::net::IpAddr;
use volary_core::NodeId;
use volary_rpc::{Decoded, Input, Output};
use volary_session::{Range, Session};

/// `MAXNETOBJ_SZ`; what clients send is far shorter.
pub(super) const OBJECT_MAX: usize = 1024;

/// The owner of a lock: a process of a client, as the client names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(super) client: Client,
    pub(super) process: u32,
    pub(super) name: Box<[u8]>,
}

/// A decoded `nlm4_lock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) fh: Box<[u8]>,
    pub(super) owner: Owner,
    /// The server's address that the client called.
    pub(super) server: IpAddr,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Wanted {
    pub(super) fn read(input: &mut Input<'_>, call: &Call) -> Decoded<Self> {
        let client = Client::read(input, call)?;
        let fh = input.opaque(fh::LEN_MAX)?.into();
        let name = input.opaque(OBJECT_MAX)?.into();
        let process = input.u32()?;
        let (offset, len) = (input.u64()?, input.u64()?);
        Ok(Self {
            fh,
            owner: Owner {
                client,
                process,
                name,
            },
            server: call.local.ip().to_canonical(),
            offset,
            len,
        })
    }

    pub(super) fn write(&self, out: &mut Output) {
        out.opaque(&self.owner.client.machine);
        out.opaque(&self.fh);
        out.opaque(&self.owner.name);
        out.u32(self.owner.process);
        out.u64(self.offset);
        out.u64(self.len);
    }

    pub(super) fn range(&self) -> Range {
        Range::new(self.offset, self.len)
    }
}

/// The file that a lock is requested on.
pub(super) struct Place<'a> {
    pub(super) export: &'a Export,
    pub(super) session: Session,
    pub(super) node: NodeId,
    /// Whether the lock is reclaimed.
    pub(super) claims: bool,
}

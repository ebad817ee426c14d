//! [`Exports`]: all exports, and the resolution of file handles.

use super::export::Export;
use super::fh::{self, BadFh, Key};
use crate::rpc::call::Call;
use crate::status::Status;
use std::net::IpAddr;
use volary_core::NodeId;
use volary_rpc::Output;
use volary_session::{Session, is_this_host};

/// All exports of a server.
pub(crate) struct Exports {
    all: Vec<Export>,
    key: Key,
}

/// The node of a file handle, and the caller's session on its volume.
pub(crate) struct At<'a> {
    pub(crate) export: &'a Export,
    pub(crate) session: Session,
    pub(crate) node: NodeId,
}

impl Exports {
    /// Returns the set of these exports, with file handles sealed by this key.
    pub(crate) fn new(all: Vec<Export>, key: Key) -> Self {
        Self { all, key }
    }

    /// Returns whether this client may use any export.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        is_this_host(peer) || self.all.iter().any(|e| e.admits(peer))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Export> {
        self.all.iter()
    }

    pub(crate) fn by_id(&self, id: u32) -> Option<&Export> {
        self.all.iter().find(|e| e.id == id)
    }

    pub(crate) fn by_name(&self, name: &[u8]) -> Option<&Export> {
        let mut exports = self.all.iter();
        exports.find(|e| e.options.name.as_bytes() == name)
    }

    pub(crate) fn only(&self) -> Option<&Export> {
        match &*self.all {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the node of a file handle, for this caller.
    ///
    /// # Errors
    /// `BADHANDLE` for bytes that cannot be a handle; `STALE` for one whose seal is not ours;
    /// `ACCES` for a client that the export does not admit.
    pub(crate) fn at(&self, call: &Call, fh: &[u8]) -> Result<At<'_>, Status> {
        let epoch = |id| self.by_id(id).map(|export| export.epoch);
        let (id, node) = self.key.open(fh, epoch).map_err(|bad| match bad {
            BadFh::Shape => Status::BADHANDLE,
            BadFh::Seal => Status::STALE,
        })?;
        let export = self.by_id(id).ok_or(Status::STALE)?;
        if !export.admits(call.peer.ip()) {
            return Err(Status::ACCES);
        }
        export.close_doomed();
        Ok(At {
            export,
            session: export.session(&call.caller),
            node,
        })
    }

    /// Returns the handle of a node.
    pub(crate) fn fh(&self, export: &Export, node: NodeId) -> [u8; fh::LEN] {
        self.key.seal(export.id, export.epoch, node)
    }

    pub(crate) fn write_post_fh(&self, out: &mut Output, export: &Export, node: NodeId) {
        out.bool(true);
        out.opaque(&self.fh(export, node));
    }
}

//! MOUNT version 3 (RFC 1813, appendix I): from a path to a file handle.

use super::programs::Programs;
use crate::exports::export::Export;
use crate::rpc::call::Call;
use crate::rpc::message::Refusal;
use crate::status::Status;
use tracing::{info, warn};
use volary_core::{FileKind, NodeId, escape_short};
use volary_rpc::numbers::{AUTH_NONE, AUTH_SYS};
use volary_rpc::{Decoded, Input, Output};
use volary_session::Follow;

pub(crate) const PROGRAM: u32 = 100_005;
pub(crate) const VERSION: u32 = 3;
/// `MNTPATHLEN`.
const PATH_MAX: usize = 1024;
impl Programs {
    /// Answers one call of MOUNT.
    pub(crate) fn mount(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        let peer = call.peer.ip().to_canonical();
        match call.procedure {
            0 => {}
            1 => self.mnt(call, input, out)?,
            2 => self.dump(out),
            3 => self.mounts().remove(peer, Some(input.opaque(PATH_MAX)?)),
            4 => self.mounts().remove(peer, None),
            5 => self.export_list(call, out),
            _ => return Err(Refusal::NoProcedure),
        }
        Ok(())
    }

    fn mnt(&self, call: &Call, input: &mut Input<'_>, out: &mut Output) -> Decoded<()> {
        let path = input.opaque(PATH_MAX)?;
        let address = call.peer.ip().to_canonical();
        let shown = escape_short(path);
        match self.mounted(call, path) {
            Ok((export, node)) => {
                let caller = &call.caller;
                info!(target: "NFS", %caller, %address, path = shown, "mounted");
                self.mounts().add(call.peer.ip().to_canonical(), path);
                out.u32(Status::OK.0);
                out.opaque(&self.exports().fh(export, node));
                out.u32(2);
                out.u32(AUTH_SYS);
                out.u32(AUTH_NONE);
            }
            Err(status) => {
                let status = status.0;
                warn!(target: "NFS", %address, path = shown, status, "mount refused");
                out.u32(status);
            }
        }
        Ok(())
    }

    /// Returns the directory at `/EXPORT/path`; `/` is the only export, if there is just one.
    fn mounted(&self, call: &Call, path: &[u8]) -> Result<(&Export, NodeId), Status> {
        let inner = path.strip_prefix(b"/").unwrap_or(path);
        let mut parts = inner.splitn(2, |&b| b == b'/');
        let name = parts.next().unwrap_or_default();
        let rest = parts.next().unwrap_or_default();
        let export = if name.is_empty() && rest.is_empty() {
            self.exports().only()
        } else {
            self.exports().by_name(name)
        };
        // A client that may not use an export does not learn that it exists.
        let admits = |export: &&Export| export.admits(call.peer.ip());
        let export = export.filter(admits).ok_or(Status::NOENT)?;
        let session = export.session(&call.caller);
        if rest.iter().all(|&b| b == b'/') {
            return Ok((export, session.root()));
        }
        let entry = session.walk(rest, Follow::Yes)?;
        match entry.attr.kind {
            FileKind::Dir => Ok((export, entry.node)),
            _ => Err(Status::NOTDIR),
        }
    }

    fn dump(&self, out: &mut Output) {
        for (ip, path) in &*self.mounts().lock() {
            out.bool(true);
            out.opaque(ip.to_string().as_bytes());
            out.opaque(path);
        }
        out.bool(false);
    }

    fn export_list(&self, call: &Call, out: &mut Output) {
        for export in self.exports().iter() {
            if !export.admits(call.peer.ip()) {
                continue;
            }
            out.bool(true);
            out.opaque(format!("/{}", export.options.name).as_bytes());
            for clients in &export.options.clients {
                out.bool(true);
                out.opaque(clients.to_string().as_bytes());
            }
            out.bool(false);
        }
        out.bool(false);
    }
}

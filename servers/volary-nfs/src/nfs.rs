//! NFS version 3 (RFC 1813): its 22 procedures.
//!
//! | module | procedures |
//! |---|---|
//! | `nodes` | GETATTR, SETATTR, ACCESS, READLINK |
//! | `names` | LOOKUP, REMOVE, RMDIR, RENAME, LINK |
//! | `makers` | CREATE, MKDIR, SYMLINK, MKNOD |
//! | `data` | READ, WRITE, COMMIT |
//! | `dirs` | READDIR, READDIRPLUS |
//! | `volume` | FSSTAT, FSINFO, PATHCONF |
//! | `attrs` | attributes on the wire |

pub(crate) mod attrs;
mod data;
mod dirs;
mod makers;
mod names;
mod nodes;
mod volume;

use crate::call::Call;
use crate::export::Export;
use crate::fh::{self, BadFh};
use crate::order::Wcc;
use crate::programs::Programs;
use crate::rpc::Refusal;
use crate::status::Status;
use attrs::Shown;
use volary_core::{Attr, NodeId};
use volary_rpc::{Decoded, Input, Output};
use volary_session::Session;

pub(crate) const PROGRAM: u32 = 100_003;
pub(crate) const VERSION: u32 = 3;

/// The largest READ and WRITE, in bytes.
pub(crate) const DATA_MAX: usize = 1 << 20;
/// Longest name that is looked at: as long as any volume's.
const NAME_MAX: usize = 1024;

/// What a procedure answers: a status, and what comes after it.
type Answered<T> = Result<T, Status>;

/// A node that a file handle leads to, and the caller on its volume.
pub(crate) struct At<'a> {
    pub(crate) export: &'a Export,
    pub(crate) session: Session,
    pub(crate) node: NodeId,
}

/// A file handle, as it came.
pub(crate) fn read_fh<'a>(input: &mut Input<'a>) -> Decoded<&'a [u8]> {
    input.opaque(fh::LEN_MAX)
}

/// A directory and a name in it.
fn read_place<'a>(input: &mut Input<'a>) -> Decoded<(&'a [u8], &'a [u8])> {
    Ok((read_fh(input)?, input.opaque(NAME_MAX)?))
}

impl Programs {
    /// Answers one call of NFS.
    pub(crate) fn nfs(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        match call.procedure {
            0 => {}
            1 => self.getattr(call, input, out)?,
            2 => self.setattr(call, input, out)?,
            3 => self.lookup(call, input, out)?,
            4 => self.access(call, input, out)?,
            5 => self.readlink(call, input, out)?,
            6 => self.read(call, input, out)?,
            7 => self.write(call, input, out)?,
            8 => self.create(call, input, out)?,
            9 => self.mkdir(call, input, out)?,
            10 => self.symlink(call, input, out)?,
            11 => self.mknod(call, input, out)?,
            12 => self.remove(call, input, out)?,
            13 => self.rmdir(call, input, out)?,
            14 => self.rename(call, input, out)?,
            15 => self.link(call, input, out)?,
            16 => self.readdir(call, input, out)?,
            17 => self.readdirplus(call, input, out)?,
            18 => self.fsstat(call, input, out)?,
            19 => self.fsinfo(call, input, out)?,
            20 => self.pathconf(call, input, out)?,
            21 => self.commit(call, input, out)?,
            _ => return Err(Refusal::NoProcedure),
        }
        Ok(())
    }

    /// The node that a file handle leads to, for this caller.
    ///
    /// # Errors
    /// `BADHANDLE` for what cannot be a handle; `STALE` for one whose seal is not
    /// ours; `ACCES` for a client that the export does not admit.
    pub(crate) fn at(&self, call: &Call, fh: &[u8]) -> Answered<At<'_>> {
        let epoch = |id| self.export_by_id(id).map(|export| export.epoch);
        let (id, node) = self.key().open(fh, epoch).map_err(|bad| match bad {
            BadFh::Shape => Status::BADHANDLE,
            BadFh::Seal => Status::STALE,
        })?;
        let export = self.export_by_id(id).ok_or(Status::STALE)?;
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

    /// The handle of a node.
    pub(crate) fn fh(&self, export: &Export, node: NodeId) -> [u8; fh::LEN] {
        self.key().seal(export.id, export.epoch, node)
    }

    fn write_post_fh(&self, out: &mut Output, export: &Export, node: NodeId) {
        out.bool(true);
        out.opaque(&self.fh(export, node));
    }
}

impl At<'_> {
    fn shown(&self) -> Shown {
        let export = self.export;
        Shown::new(export.id.into(), &export.caps(), export.instance)
    }

    fn attr(&self) -> Option<Attr> {
        self.session.getattr(self.node).ok()
    }

    fn write_post(&self, out: &mut Output, attr: Option<&Attr>) {
        attrs::write_post(out, self.shown(), attr);
    }

    fn write_wcc(&self, out: &mut Output, wcc: &Wcc) {
        attrs::write_wcc(out, self.shown(), wcc);
    }

    /// Changes this node, or the directory that it is: `change` is done with the
    /// attributes from before and after around it.
    fn change<T>(&self, change: impl FnOnce() -> Answered<T>) -> (Answered<T>, Wcc) {
        if let Err(status) = self.export.check_writable() {
            let after = self.attr();
            return (
                Err(status),
                Wcc {
                    before: after,
                    after,
                },
            );
        }
        let order = self.export.order();
        let alone = order.alone(self.node, None);
        let before = order.before(&self.session, self.node);
        let done = change();
        let wcc = before.after(&self.session);
        drop(alone);
        let done = done.and_then(|done| self.export.settle().map(|()| done));
        (done, wcc)
    }
}

/// Writes what a change of a node answers: its `wcc_data` either way.
fn write_changed(out: &mut Output, at: &Answered<At<'_>>, done: &Answered<()>, wcc: &Wcc) {
    let status = done.err().unwrap_or(Status::OK);
    out.u32(status.0);
    match at {
        Ok(at) => at.write_wcc(out, wcc),
        Err(_) => attrs::write_wcc(out, Shown::default(), wcc),
    }
}

//! Common parts of the procedures: reading their first arguments, and writing attributes.

use super::attrs::{self, Shown};
use crate::exports::fh;
use crate::exports::resolve::At;
use crate::kept::order::Wcc;
use crate::status::Status;
use volary_core::Attr;
use volary_rpc::{Decoded, Input, Output};

/// The largest READ and WRITE, in bytes.
pub(crate) const DATA_MAX: usize = 1 << 20;
/// Longest name that is accepted: as long as any volume's.
pub(super) const NAME_MAX: usize = 1024;

/// The result of a procedure: its values, or a status.
pub(super) type Answered<T> = Result<T, Status>;

/// Reads a file handle, without checking it.
pub(crate) fn read_fh<'a>(input: &mut Input<'a>) -> Decoded<&'a [u8]> {
    input.opaque(fh::LEN_MAX)
}

/// Reads a directory's handle and a name.
pub(super) fn read_place<'a>(input: &mut Input<'a>) -> Decoded<(&'a [u8], &'a [u8])> {
    Ok((read_fh(input)?, input.opaque(NAME_MAX)?))
}

impl At<'_> {
    pub(super) fn shown(&self) -> Shown {
        let export = self.export;
        Shown::new(export.id.into(), &export.caps(), export.instance)
    }

    pub(super) fn attr(&self) -> Option<Attr> {
        self.session.getattr(self.node).ok()
    }

    pub(super) fn write_post(&self, out: &mut Output, attr: Option<&Attr>) {
        attrs::write_post(out, self.shown(), attr);
    }

    pub(super) fn write_wcc(&self, out: &mut Output, wcc: &Wcc) {
        attrs::write_wcc(out, self.shown(), wcc);
    }

    /// Makes a change to this node, or in this directory, and reads the attributes before and after
    /// it.
    pub(super) fn change<T>(&self, change: impl FnOnce() -> Answered<T>) -> (Answered<T>, Wcc) {
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

/// Writes the reply to a change of a node, which has `wcc_data` in any case.
pub(super) fn write_changed(
    out: &mut Output,
    at: &Answered<At<'_>>,
    done: &Answered<()>,
    wcc: &Wcc,
) {
    let status = done.err().unwrap_or(Status::OK);
    out.u32(status.0);
    match at {
        Ok(at) => at.write_wcc(out, wcc),
        Err(_) => attrs::write_wcc(out, Shown::default(), wcc),
    }
}

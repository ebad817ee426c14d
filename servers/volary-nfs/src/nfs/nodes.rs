//! GETATTR, SETATTR, ACCESS, READLINK.

use super::attrs::{read_set, read_time, write_attr};
use super::common::{Answered, read_fh, write_changed};
use crate::exports::resolve::At;
use crate::exports::resolve::Exports;
use crate::kept::order::Wcc;
use crate::rpc::call::Call;
use crate::status::Status;
use volary_core::{Access, Attr, FileKind, Kind, Mode, SetAttr, Time};
use volary_rpc::{Decoded, Input, Output};

/// The bits of ACCESS (RFC 1813, section 3.3.4).
mod bits {
    pub(super) const READ: u32 = 0x01;
    pub(super) const LOOKUP: u32 = 0x02;
    pub(super) const MODIFY: u32 = 0x04;
    pub(super) const EXTEND: u32 = 0x08;
    pub(super) const DELETE: u32 = 0x10;
    pub(super) const EXECUTE: u32 = 0x20;
}

pub(super) fn getattr(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let found = exports.at(call, fh).and_then(|at| {
        let attr = at.session.getattr(at.node)?;
        Ok((at.shown(), attr))
    });
    match found {
        Ok((shown, attr)) => {
            out.u32(Status::OK.0);
            write_attr(out, shown, &attr);
        }
        Err(status) => out.u32(status.0),
    }
    Ok(())
}

pub(super) fn setattr(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let set = read_set(input)?;
    let guard = if input.bool()? {
        Some(read_time(input)?)
    } else {
        None
    };
    let at = exports.at(call, fh);
    let (done, wcc) = match &at {
        Ok(at) => at.set(&set, guard),
        Err(status) => (Err(*status), Wcc::default()),
    };
    write_changed(out, &at, &done, &wcc);
    Ok(())
}

pub(super) fn access(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let want = input.u32()?;
    let found = exports.at(call, fh).and_then(|at| {
        let attr = at.session.getattr(at.node)?;
        let granted = at.granted(&attr, want)?;
        Ok((at, attr, granted))
    });
    match found {
        Ok((at, attr, granted)) => {
            out.u32(Status::OK.0);
            at.write_post(out, Some(&attr));
            out.u32(granted);
        }
        Err(status) => write_none(out, status),
    }
    Ok(())
}

pub(super) fn readlink(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let at = exports.at(call, fh);
    let target = at.as_ref().map_err(|status| *status).and_then(|at| {
        let target = at.session.readlink(at.node)?;
        Ok(target)
    });
    out.u32(target.as_ref().err().unwrap_or(&Status::OK).0);
    match &at {
        Ok(at) => at.write_post(out, at.attr().as_ref()),
        Err(_) => out.bool(false),
    }
    if let Ok(target) = target {
        out.opaque(&target);
    }
    Ok(())
}

impl At<'_> {
    fn set(&self, set: &SetAttr, guard: Option<Time>) -> (Answered<()>, Wcc) {
        self.change(|| {
            if let Some(ctime) = guard
                && self.shown().ctime(&self.session.getattr(self.node)?) != ctime
            {
                return Err(Status::NOT_SYNC);
            }
            match self.session.setattr(self.node, set) {
                // The owner may truncate a file that it has open, whatever the mode says.
                Err(e) if e == Kind::Access && set.size.is_some() => {
                    let held = self.export.open(&self.session, self.node, Mode::Write)?;
                    self.session.setattr_open(held.open, set)?;
                }
                done => drop(done?),
            }
            Ok(())
        })
    }

    /// Returns the bits of `want` that the caller is granted.
    fn granted(&self, attr: &Attr, want: u32) -> Answered<u32> {
        let dir = attr.kind == FileKind::Dir;
        let (reads, changes, runs) = if dir {
            (
                bits::READ,
                bits::MODIFY | bits::EXTEND | bits::DELETE,
                bits::LOOKUP,
            )
        } else {
            (bits::READ, bits::MODIFY | bits::EXTEND, bits::EXECUTE)
        };
        let mut granted = 0;
        for (bits, access) in [
            (reads, Access::READ),
            (changes, Access::WRITE),
            (runs, Access::EXEC),
        ] {
            let changes_what_is_kept = access == Access::WRITE && self.export.options.read_only;
            if want & bits == 0 || changes_what_is_kept {
                continue;
            }
            match self.session.access_seen(attr, access) {
                Ok(()) => granted |= bits,
                Err(e) if matches!(e.kind(), Kind::Access | Kind::ReadOnly) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(granted & want)
    }
}

/// Writes a status, and no attributes.
pub(super) fn write_none(out: &mut Output, status: Status) {
    out.u32(status.0);
    out.bool(false);
}

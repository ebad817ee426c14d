//! LOOKUP, REMOVE, RMDIR, RENAME, LINK.

use super::attrs;
use super::attrs::Shown;
use super::common::{Answered, read_fh, read_place, write_changed};
use super::nodes::write_none;
use crate::exports::resolve::At;
use crate::exports::resolve::Exports;
use crate::kept::order::Wcc;
use crate::rpc::call::Call;
use crate::status::Status;
use volary_core::RenameFlags;
use volary_rpc::{Decoded, Input, Output};

pub(super) fn lookup(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let at = match exports.at(call, fh) {
        Ok(at) => at,
        Err(status) => {
            write_none(out, status);
            return Ok(());
        }
    };
    let dir = at.session.getattr(at.node);
    let found = dir
        .as_ref()
        .map_err(volary_core::Error::kind)
        .and_then(|dir| {
            let found = at.session.lookup_seen(dir, name);
            found.map_err(|e| e.kind())
        });
    match found {
        Ok(entry) => {
            out.u32(Status::OK.0);
            out.opaque(&exports.fh(at.export, entry.node));
            at.write_post(out, Some(&entry.attr));
        }
        Err(kind) => out.u32(Status::from(kind).0),
    }
    at.write_post(out, dir.ok().as_ref());
    Ok(())
}

pub(super) fn remove(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    take(exports, call, input, out, |at, name| {
        at.session.unlink(at.node, name)
    })
}

pub(super) fn rmdir(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    take(exports, call, input, out, |at, name| {
        at.session.rmdir(at.node, name)
    })
}

fn take(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
    take: impl FnOnce(&At<'_>, &[u8]) -> volary_core::Result<()>,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let at = exports.at(call, fh);
    let (done, wcc) = match &at {
        Ok(at) => at.change(|| Ok(take(at, name)?)),
        Err(status) => (Err(*status), Wcc::default()),
    };
    write_changed(out, &at, &done, &wcc);
    Ok(())
}

pub(super) fn rename(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (from_fh, name) = read_place(input)?;
    let (to_fh, new_name) = read_place(input)?;
    let ends = exports
        .at(call, from_fh)
        .and_then(|from| Ok((from, exports.at(call, to_fh)?)));
    let (done, (from, to)) = match &ends {
        Ok((from, to)) if from.export.id == to.export.id => move_name(from, name, to, new_name),
        Ok(_) => (Err(Status::XDEV), <(Wcc, Wcc)>::default()),
        Err(status) => (Err(*status), <(Wcc, Wcc)>::default()),
    };
    out.u32(done.err().unwrap_or(Status::OK).0);
    let shown = ends
        .as_ref()
        .map_or(Shown::default(), |(from, _)| from.shown());
    attrs::write_wcc(out, shown, &from);
    attrs::write_wcc(out, shown, &to);
    Ok(())
}

pub(super) fn link(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let (dir_fh, name) = read_place(input)?;
    let ends = exports
        .at(call, fh)
        .and_then(|at| Ok((at, exports.at(call, dir_fh)?)));
    let (done, attr, wcc) = match &ends {
        Ok((at, dir)) if at.export.id == dir.export.id => {
            let (done, wcc) = dir.change(|| {
                dir.session.link(at.node, dir.node, name)?;
                Ok(())
            });
            (done, at.attr(), wcc)
        }
        Ok(_) => (Err(Status::XDEV), None, Wcc::default()),
        Err(status) => (Err(*status), None, Wcc::default()),
    };
    out.u32(done.err().unwrap_or(Status::OK).0);
    let shown = ends.as_ref().map_or(Shown::default(), |(at, _)| at.shown());
    attrs::write_post(out, shown, attr.as_ref());
    attrs::write_wcc(out, shown, &wcc);
    Ok(())
}

fn move_name(
    from: &At<'_>,
    name: &[u8],
    to: &At<'_>,
    new_name: &[u8],
) -> (Answered<()>, (Wcc, Wcc)) {
    let (export, session) = (from.export, &from.session);
    if let Err(status) = export.check_writable() {
        return (Err(status), <(Wcc, Wcc)>::default());
    }
    let order = export.order();
    let alone = order.alone(from.node, Some(to.node));
    let befores = (
        order.before(session, from.node),
        order.before(session, to.node),
    );
    let done = session.rename(from.node, name, to.node, new_name, RenameFlags::REPLACE);
    let wccs = (befores.0.after(session), befores.1.after(session));
    drop(alone);
    let done = done.map_err(Status::from).and_then(|()| export.settle());
    (done, wccs)
}

//! READ, WRITE, COMMIT.

use super::attrs;
use super::attrs::{FATTR, Shown, write_attr};
use super::common::{Answered, DATA_MAX, read_fh};
use super::nodes::write_none;
use crate::exports::resolve::At;
use crate::exports::resolve::Exports;
use crate::kept::opens::Held;
use crate::kept::order::Wcc;
use crate::rpc::call::Call;
use crate::status::Status;
use std::sync::Arc;
use volary_core::{Attr, Kind, Mode};
use volary_rpc::{Decoded, Garbage, Input, Output, count, padding};

/// `stable_how`: what part of a WRITE must be durable before the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Unstable,
    DataSync,
    FileSync,
}

impl Stability {
    fn read(input: &mut Input<'_>) -> Decoded<Self> {
        match input.u32()? {
            0 => Ok(Self::Unstable),
            1 => Ok(Self::DataSync),
            2 => Ok(Self::FileSync),
            _ => Err(Garbage),
        }
    }
}

pub(super) fn read(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let (offset, len) = (input.u64()?, input.u32()?);
    let at = match exports.at(call, fh) {
        Ok(at) => at,
        Err(status) => {
            write_none(out, status);
            return Ok(());
        }
    };
    let begin = out.len();
    let len = usize::try_from(len).unwrap_or(DATA_MAX).min(DATA_MAX);
    if let Err(status) = at.read(offset, len, out) {
        out.truncate(begin);
        out.u32(status.0);
        at.write_post(out, at.attr().as_ref());
    }
    Ok(())
}

pub(super) fn write(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let (offset, len) = (input.u64()?, input.u32()?);
    let stability = Stability::read(input)?;
    let data = input.opaque(DATA_MAX)?;
    let data = usize::try_from(len).ok().and_then(|len| data.get(..len));
    let data = data.ok_or(Garbage)?;
    let at = exports.at(call, fh);
    let (done, wcc) = match &at {
        Ok(at) => at.write(offset, data, stability),
        Err(status) => (Err(*status), Wcc::default()),
    };
    write_head(out, &at, &done, &wcc);
    if let Ok(verifier) = done {
        out.u32(count(data.len()));
        out.u32(stability as u32);
        out.u64(verifier);
    }
    Ok(())
}

pub(super) fn commit(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    // The range is ignored: all of the file is committed.
    input.u64()?;
    input.u32()?;
    let at = exports.at(call, fh);
    let (done, wcc) = match &at {
        Ok(at) => at.commit(),
        Err(status) => (Err(*status), Wcc::default()),
    };
    write_head(out, &at, &done, &wcc);
    if let Ok(verifier) = done {
        out.u64(verifier);
    }
    Ok(())
}

/// Writes the status and `wcc_data`.
fn write_head(out: &mut Output, at: &Answered<At<'_>>, done: &Answered<u64>, wcc: &Wcc) {
    out.u32(done.err().unwrap_or(Status::OK).0);
    let shown = at.as_ref().map_or(Shown::default(), At::shown);
    attrs::write_wcc(out, shown, wcc);
}

impl At<'_> {
    /// Reads straight into the reply, whose head has a known length.
    fn read(&self, offset: u64, len: usize, out: &mut Output) -> Answered<()> {
        let held = self.export.open(&self.session, self.node, Mode::Read)?;
        out.u32(Status::OK.0);
        out.bool(true);
        let attrs_at = out.len();
        out.room(FATTR);
        out.room(12);
        let data_at = out.len();
        let room = out.room(len);
        let read = self.session.read(held.open, offset, room)?;
        let attr: Attr = self.session.getattr(self.node)?;
        out.truncate(attrs_at);
        write_attr(out, self.shown(), &attr);
        let end = offset.saturating_add(read as u64);
        out.u32(count(read));
        // A short read is at the end, even if the file has grown since.
        out.bool(end >= attr.size || read < len);
        out.u32(count(read));
        debug_assert_eq!(out.len(), data_at);
        out.room(read);
        out.room(padding(read)).fill(0);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], stability: Stability) -> (Answered<u64>, Wcc) {
        if let Err(status) = self.export.check_writable() {
            return (Err(status), Wcc::default());
        }
        // Read before the write, so that a loss in between is seen.
        let verifier = self.export.write_verifier();
        let held = match self.export.open(&self.session, self.node, Mode::Write) {
            Ok(held) => held,
            Err(e) => return (Err(e.into()), Wcc::default()),
        };
        let order = self.export.order();
        let alone = order.alone(self.node, None);
        let before = order.before(&self.session, self.node);
        let written = self.write_data(&held, offset, data);
        let wcc = before.after(&self.session);
        drop(alone);
        let done = written.and_then(|()| match stability {
            Stability::Unstable => Ok(()),
            stable => {
                let data_only = stable == Stability::DataSync;
                self.export.commit(&self.session, held.open, data_only)
            }
        });
        (done.map(|()| verifier), wcc)
    }

    fn write_data(&self, held: &Held, offset: u64, data: &[u8]) -> Answered<()> {
        if offset.checked_add(data.len() as u64).is_none() {
            return Err(Status::FBIG);
        }
        if !data.is_empty() {
            self.session.write(held.open, Some(offset), data)?;
        }
        Ok(())
    }

    fn commit(&self) -> (Answered<u64>, Wcc) {
        let attr = self.attr();
        let wcc = Wcc {
            before: attr,
            after: attr,
        };
        let done = self.export.check_writable().and_then(|()| {
            self.export
                .commit(&self.session, self.open_any()?.open, false)
        });
        // Read after the sync, so that a loss before it is seen.
        (done.map(|()| self.export.write_verifier()), wcc)
    }

    /// Returns an open of any mode: a caller who may no longer write may still commit earlier
    /// writes.
    fn open_any(&self) -> Answered<Arc<Held>> {
        match self.export.open(&self.session, self.node, Mode::Write) {
            Err(e) if e == Kind::Access || e == Kind::IsDir => {
                Ok(self.export.open(&self.session, self.node, Mode::Read)?)
            }
            opened => Ok(opened?),
        }
    }
}

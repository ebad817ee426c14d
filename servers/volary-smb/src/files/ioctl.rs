//! IOCTL (MS-SMB2 3.3.5.15): answers the supported codes. Codes of drivers are `passed` on, and all
//! others are refused.

use super::fsctl::{Asked, reply};
use super::open::File;
use super::{access, attrs, copychunk, io, passed, reparse};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::file::attribute;
use crate::wire::fscc::le::{u8_at, u64_at};
use crate::wire::{Cursor, Out, Status};
use volary_core::{Caps, Extent, Kind, Place};
use volary_session::Session;

/// Codes (MS-FSCC 2.3, MS-SMB2 2.2.31).
mod code {
    pub(super) const DFS_GET_REFERRALS: u32 = 0x0006_0194;
    pub(super) const DFS_GET_REFERRALS_EX: u32 = 0x0006_01b0;
    pub(super) const GET_COMPRESSION: u32 = 0x0009_003c;
    pub(super) const GET_OBJECT_ID: u32 = 0x0009_009c;
    pub(super) const CREATE_OR_GET_OBJECT_ID: u32 = 0x0009_00c0;
    pub(super) const SET_REPARSE_POINT: u32 = 0x0009_00a4;
    pub(super) const GET_REPARSE_POINT: u32 = 0x0009_00a8;
    pub(super) const DELETE_REPARSE_POINT: u32 = 0x0009_00ac;
    pub(super) const SET_COMPRESSION: u32 = 0x0009_c040;
    pub(super) const QUERY_NETWORK_INTERFACES: u32 = 0x0014_01fc;
    pub(super) const SET_SPARSE: u32 = 0x0009_00c4;
    pub(super) const QUERY_ALLOCATED_RANGES: u32 = 0x0009_40cf;
    pub(super) const SET_ZERO_DATA: u32 = 0x0009_80c8;
    pub(super) const REQUEST_RESUME_KEY: u32 = 0x0014_0078;
    pub(super) const COPYCHUNK: u32 = 0x0014_40f2;
    pub(super) const COPYCHUNK_WRITE: u32 = 0x0014_80f2;
    pub(super) const ENUMERATE_SNAPSHOTS: u32 = 0x0014_4064;
}

const IS_FSCTL: u32 = 1;
/// The most bytes that are read to find holes.
const SCANNED_MAX: u64 = 16 << 20;
/// Bytes that are zeroed while the client waits. For more, it is told that this takes time.
const ZEROED_AT_ONCE: u64 = 16 << 20;
/// The most ranges in a reply.
const RANGES_MAX: usize = 4096;

/// Answers IOCTL.
pub(crate) fn ioctl(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 57 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    c.skip(2)?;
    let code = c.u32()?;
    let id = FileId::read(&mut c)?;
    let (input_at, input_len) = (c.u32()?, c.u32()?);
    c.skip(12)?;
    let (max, flags) = (c.u32()?, c.u32()?);
    if flags != IS_FSCTL {
        return Err(Status::NOT_SUPPORTED.into());
    }
    if max > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    match code {
        code::DFS_GET_REFERRALS | code::DFS_GET_REFERRALS_EX => {
            return Err(Status::FS_DRIVER_REQUIRED.into());
        }
        code::QUERY_NETWORK_INTERFACES => return Err(Status::NOT_SUPPORTED.into()),
        _ => {}
    }
    let file = call.named(id)?;
    let input = match input_len {
        0 => &[][..],
        len => call.part(input_at as usize, len as usize)?,
    };
    let asked = Asked {
        code,
        input,
        max: max as usize,
    };
    let output = answer(call, &file, &asked)?;
    if output.len() > asked.max {
        return Err(Status::BUFFER_TOO_SMALL.into());
    }
    Ok(reply(code, file.id, &output))
}

fn answer(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Result<Vec<u8>, Failure> {
    match asked.code {
        code::GET_COMPRESSION => Ok(vec![0, 0]),
        code::GET_OBJECT_ID | code::CREATE_OR_GET_OBJECT_ID => object_id(call, file),
        code::SET_REPARSE_POINT => reparse::set(call, file, asked.input),
        code::GET_REPARSE_POINT => reparse::get(call, file, asked),
        code::DELETE_REPARSE_POINT => reparse::delete(call, file, asked.input),
        code::SET_SPARSE => set_sparse(call, file, asked.input),
        code::QUERY_ALLOCATED_RANGES => allocated_ranges(call, file, asked),
        code::SET_ZERO_DATA => zero(call, file, asked.input),
        code::REQUEST_RESUME_KEY => Ok(copychunk::resume_key(call, file)),
        code::COPYCHUNK => copychunk::copy(call, file, asked, true),
        code::COPYCHUNK_WRITE => copychunk::copy(call, file, asked, false),
        // No file is compressed, so this changes nothing.
        code::SET_COMPRESSION if asked.input == [0, 0] => Ok(Vec::new()),
        code::SET_COMPRESSION | code::ENUMERATE_SNAPSHOTS => Err(Status::NOT_SUPPORTED.into()),
        _ => passed::on(call, file, asked),
    }
}

/// Returns the object id, which is the node's number: 16 bytes, and 48 bytes about its origin.
fn object_id(call: &Call<'_>, file: &File) -> Result<Vec<u8>, Failure> {
    let attr = call.tree.session.getattr_open(file.open)?;
    let mut out = Out::with_capacity(64);
    out.u64(attr.node.ino.get())
        .u64(attr.node.generation.into());
    out.bytes(&call.link.shared.guid).zeros(32);
    Ok(out.done())
}

fn set_sparse(call: &Call<'_>, file: &File, input: &[u8]) -> Result<Vec<u8>, Failure> {
    file.need_file().map_err(|_| Status::INVALID_PARAMETER)?;
    file.need_any(access::WRITES | access::WRITE_ATTRIBUTES)?;
    let sparse = u8_at(input, 0).is_none_or(|byte| byte != 0);
    let session = call.waiting();
    let attr = session.getattr_open(file.open)?;
    let common = &call.tree.common;
    let dos = attrs::dos(common, &attr);
    attrs::set_dos(
        &session,
        common,
        &attr,
        dos & !attribute::SPARSE,
        Some(sparse),
    )?;
    Ok(Vec::new())
}

/// Returns the ranges with content, as the volume reports them. Otherwise, all of the file.
fn allocated_ranges(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Result<Vec<u8>, Failure> {
    file.need_file().map_err(|_| Status::INVALID_PARAMETER)?;
    file.need_any(access::READ_DATA)?;
    let session = call.waiting();
    let (offset, len) = range(asked.input)?;
    let size = session.getattr_open(file.open)?.size;
    let end = offset.saturating_add(len).min(size);
    let mut out = Out::new();
    if offset < end {
        for (from, to) in content(call, &session, file, offset, end)?
            .into_iter()
            .take(RANGES_MAX)
        {
            if out.len().saturating_add(16) > asked.max {
                return Err(cut(asked, file, out));
            }
            out.u64(from).u64(to.saturating_sub(from));
        }
    }
    Ok(out.done())
}

fn cut(asked: &Asked<'_>, file: &File, out: Out) -> Failure {
    if out.len() == 0 {
        return Status::BUFFER_TOO_SMALL.into();
    }
    Failure::with_body(
        Status::BUFFER_OVERFLOW,
        reply(asked.code, file.id, &out.done()),
    )
}

/// Returns the ranges within `offset` and `end` that are not holes.
fn content(
    call: &Call<'_>,
    session: &Session,
    file: &File,
    offset: u64,
    end: u64,
) -> Result<Vec<(u64, u64)>, Failure> {
    if !session.caps().has(Caps::EXTENTS) {
        let attr = session.getattr_open(file.open)?;
        let sparse = attrs::dos(&call.tree.common, &attr) & attribute::SPARSE;
        let looks = sparse != 0 && end.saturating_sub(offset) <= SCANNED_MAX;
        return if looks {
            scanned(session, file, offset, end)
        } else {
            Ok(vec![(offset, end)])
        };
    }
    let mut extents = Vec::new();
    session.extents(file.open, offset, end.saturating_sub(offset), &mut extents)?;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let held = |extent: &&Extent| extent.place != Place::Hole;
    for extent in extents.iter().filter(held) {
        let from = extent.offset.max(offset);
        let to = extent.offset.saturating_add(extent.len).min(end);
        match ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ if from < to => ranges.push((from, to)),
            _ => {}
        }
    }
    Ok(ranges)
}

/// Returns the ranges of blocks with content, if the volume cannot report holes. Blocks of a sparse
/// file that read as zeros count as holes.
fn scanned(
    session: &Session,
    file: &File,
    offset: u64,
    end: u64,
) -> Result<Vec<(u64, u64)>, Failure> {
    const BLOCK: u64 = 4096;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut buf = [0; BLOCK as usize];
    let mut from = offset;
    while from < end {
        // The whole block is checked, so that a request for a part of it gives the same result.
        let start = from & !(BLOCK - 1);
        let to = start.saturating_add(BLOCK).min(end);
        let n = session.read(file.open, start, &mut buf)?;
        let held = buf.iter().take(n).any(|byte| *byte != 0);
        match ranges.last_mut() {
            Some(last) if held && last.1 == from => last.1 = to,
            _ if held => ranges.push((from, to)),
            _ => {}
        }
        from = to;
    }
    Ok(ranges)
}

/// Returns two 64-bit numbers: two offsets, or an offset and a length.
fn range(input: &[u8]) -> Result<(u64, u64), Failure> {
    let (first, second) = (u64_at(input, 0), u64_at(input, 8));
    let (Some(first), Some(second)) = (first, second) else {
        return Err(Status::INVALID_PARAMETER.into());
    };
    let max = i64::MAX as u64;
    if first > max || second > max || first.saturating_add(second) > max {
        return Err(Status::INVALID_PARAMETER.into());
    }
    Ok((first, second))
}

/// SET_ZERO_DATA: makes the range read as zeros. If the file is sparse and the volume has holes,
/// frees the range. Otherwise, writes zeros over data and leaves holes alone.
fn zero(call: &Call<'_>, file: &File, input: &[u8]) -> Result<Vec<u8>, Failure> {
    file.need_file().map_err(|_| Status::INVALID_PARAMETER)?;
    file.need_any(access::WRITE_DATA)?;
    let (from, to) = range(input)?;
    if from > to {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let session = call.waiting();
    let attr = session.getattr_open(file.open)?;
    let to = to.min(attr.size);
    if from >= to {
        return Ok(Vec::new());
    }
    let len = to.saturating_sub(from);
    if len > ZEROED_AT_ONCE {
        call.wait.pend();
    }
    io::check_locks(&session, file.open, from, len, true)?;
    let sparse = attrs::dos(&call.tree.common, &attr) & attribute::SPARSE != 0;
    let punched = sparse && session.caps().has(Caps::HOLES) && punch(&session, file, from, len)?;
    if !punched && session.caps().has(Caps::EXTENTS) {
        for (from, to) in content(call, &session, file, from, to)? {
            fill(call, &session, file, from, to)?;
        }
    } else if !punched {
        blank(call, &session, file, from, to)?;
    }
    io::written(call.tree, &session, file)?;
    Ok(Vec::new())
}

fn punch(session: &Session, file: &File, from: u64, len: u64) -> Result<bool, Failure> {
    match session.allocate(file.open, from, len, true) {
        Err(e) if e == Kind::Unsupported => Ok(false),
        punched => Ok(punched.map(|()| true)?),
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Splits a range into pieces no longer than [`ZEROS`]. Returns the offset and the zeros of each.
fn pieces(from: u64, to: u64) -> impl Iterator<Item = (u64, &'static [u8])> {
    (from..to).step_by(ZEROS.len()).map(move |at| {
        let len = to.saturating_sub(at).min(ZEROS.len() as u64);
        (at, ZEROS.get(..len as usize).unwrap_or(&ZEROS))
    })
}

fn fill(
    call: &Call<'_>,
    session: &Session,
    file: &File,
    from: u64,
    to: u64,
) -> Result<(), Failure> {
    for (at, zeros) in pieces(from, to) {
        call.check_wanted()?;
        session.write(file.open, Some(at), zeros)?;
    }
    Ok(())
}

/// Zeroes a range on a volume that does not report holes. Blocks that already read as zeros are not
/// written.
fn blank(
    call: &Call<'_>,
    session: &Session,
    file: &File,
    from: u64,
    to: u64,
) -> Result<(), Failure> {
    let mut buf = vec![0; ZEROS.len()];
    for (at, zeros) in pieces(from, to) {
        call.check_wanted()?;
        let part = buf.get_mut(..zeros.len()).unwrap_or_default();
        let read = session.read(file.open, at, part)?;
        if read == 0 {
            // The file was truncated meanwhile.
            return Ok(());
        }
        if part.iter().take(read).any(|byte| *byte != 0) {
            session.write(file.open, Some(at), zeros.get(..read).unwrap_or(zeros))?;
        }
    }
    Ok(())
}

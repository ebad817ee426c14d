//! Copies within the server (MS-SMB2 3.3.5.15.6): `FSCTL_SRV_COPYCHUNK`.

use super::fsctl::{self, Asked};
use super::open::File;
use super::{access, io};
use crate::answer::Failure;
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::le::{u32_at, u64_at};
use crate::wire::{Out, Status};
use std::sync::Arc;
use volary_session::Session;

/// The most chunks of a request, bytes of a chunk, and bytes of a request.
const CHUNKS_MAX: u32 = 256;
const CHUNK_MAX: u32 = 1 << 20;
const TOTAL_MAX: u32 = 16 << 20;

/// Returns the key of a copy's source: its file id and its tree. It is valid while the file is
/// open.
pub(super) fn resume_key(call: &Call<'_>, file: &File) -> Vec<u8> {
    let mut out = Out::with_capacity(32);
    out.u64(file.id.persistent).u64(file.id.volatile);
    out.u64(call.tree.id.into()).u32(0).u32(0);
    out.done()
}

/// A range to copy.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    from: u64,
    to: u64,
    len: u32,
}

/// Copies ranges of another file into this one. With `reads`, this one must be open for reading as
/// well (`FSCTL_SRV_COPYCHUNK` and not `…_WRITE`).
pub(super) fn copy(
    call: &Call<'_>,
    file: &File,
    asked: &Asked<'_>,
    reads: bool,
) -> Result<Vec<u8>, Failure> {
    if asked.max < 12 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (source_tree, source) = source(call, asked.input)?;
    let chunks = match chunks(asked.input)? {
        Some(chunks) => chunks,
        None => return Err(limits(file, asked)),
    };
    file.need_file()
        .map_err(|_| Status::INVALID_DEVICE_REQUEST)?;
    source
        .need_file()
        .map_err(|_| Status::INVALID_DEVICE_REQUEST)?;
    file.need_any(access::WRITES)?;
    if reads {
        file.need_any(access::READ_DATA)?;
    }
    source.need_any(access::READ_DATA | access::EXECUTE)?;
    let session = call.waiting();
    let mut buf = Vec::new();
    let (mut count, mut total) = (0_u32, 0_u32);
    for chunk in chunks {
        let copied = copy_one(&source_tree, &source, &session, file, chunk, &mut buf);
        if let Err(failure) = copied {
            let body = fsctl::reply(asked.code, file.id, &result(count, 0, total));
            return Err(Failure::with_body(failure.status, body));
        }
        count = count.saturating_add(1);
        total = total.saturating_add(chunk.len);
    }
    io::written(call.tree, &session, file)?;
    Ok(result(count, 0, total))
}

fn copy_one(
    from: &Session,
    source: &File,
    to: &Session,
    file: &File,
    chunk: Chunk,
    buf: &mut Vec<u8>,
) -> Result<(), Failure> {
    let len = u64::from(chunk.len);
    if chunk.from.saturating_add(len) > from.getattr_open(source.open)?.size {
        return Err(Status::INVALID_VIEW_SIZE.into());
    }
    io::check_locks(from, source.open, chunk.from, len, false)?;
    io::check_locks(to, file.open, chunk.to, len, true)?;
    buf.resize(chunk.len as usize, 0);
    let n = from.read(source.open, chunk.from, buf)?;
    if n < buf.len() {
        return Err(Status::INVALID_VIEW_SIZE.into());
    }
    to.write(file.open, Some(chunk.to), buf)?;
    Ok(())
}

/// Returns the file that a resume key names, in a session of the same user.
fn source(call: &Call<'_>, input: &[u8]) -> Result<(Session, Arc<File>), Failure> {
    let field = |at: usize| u64_at(input, at).ok_or(Status::INVALID_PARAMETER);
    let id = FileId {
        persistent: field(0)?,
        volatile: field(8)?,
    };
    let tree_id = field(16)?;
    let trees = (call.trees)();
    let tree = trees.iter().find(|tree| u64::from(tree.id) == tree_id);
    let found = tree.and_then(|tree| Some((tree.session.clone(), tree.files.get(id)?)));
    found.ok_or_else(|| Status::OBJECT_NAME_NOT_FOUND.into())
}

/// Returns the ranges, or `None` if they exceed a limit.
fn chunks(input: &[u8]) -> Result<Option<Vec<Chunk>>, Failure> {
    let count = u32_at(input, 24).ok_or(Status::INVALID_PARAMETER)?;
    if count > CHUNKS_MAX {
        return Ok(None);
    }
    let mut chunks = Vec::new();
    let mut total = 0_u32;
    let rest = input.get(32..).ok_or(Status::INVALID_PARAMETER)?;
    for at in (0..count as usize).map(|n| n.saturating_mul(24)) {
        let field = |offset: usize| u64_at(rest, at.saturating_add(offset));
        let len = u32_at(rest, at.saturating_add(16));
        let (Some(from), Some(to), Some(len)) = (field(0), field(8), len) else {
            return Err(Status::INVALID_PARAMETER.into());
        };
        total = total.saturating_add(len);
        if len == 0 || len > CHUNK_MAX || total > TOTAL_MAX {
            return Ok(None);
        }
        chunks.push(Chunk { from, to, len });
    }
    Ok(Some(chunks))
}

/// Returns `INVALID_PARAMETER` with the limits.
fn limits(file: &File, asked: &Asked<'_>) -> Failure {
    let body = result(CHUNKS_MAX, CHUNK_MAX, TOTAL_MAX);
    Failure::with_body(
        Status::INVALID_PARAMETER,
        fsctl::reply(asked.code, file.id, &body),
    )
}

fn result(chunks: u32, chunk_bytes: u32, total: u32) -> Vec<u8> {
    let mut out = Out::with_capacity(12);
    out.u32(chunks).u32(chunk_bytes).u32(total);
    out.done()
}

//! CLOSE, FLUSH, READ and WRITE (MS-SMB2 3.3.5.10 to 3.3.5.13).

use super::open::{File, Tree, end, filter};
use super::{access, attrs};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::{Body, Cursor, Out, Status, out::len32};
use std::sync::atomic::Ordering;
use volary_core::{OpenId, Result as CoreResult, SetAttr, SetTime};
use volary_session::{Range, Session};

/// The greatest offset in a file.
const OFFSET_MAX: u64 = i64::MAX as u64;
const WRITE_THROUGH: u32 = 1;
const POST_QUERY: u16 = 1;

/// Answers CLOSE.
pub(crate) fn close(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 24 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let flags = c.u16()?;
    c.skip(4)?;
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    // A running listing gets its answer first.
    drop(file.scan.lock());
    let session = &call.tree.session;
    let facts = if flags & POST_QUERY == 0 {
        None
    } else {
        let attr = session.getattr_open(file.open).ok();
        attr.map(|attr| attrs::facts(&call.tree.common, &attr))
    };
    if call.tree.files.remove(file.id).is_none() {
        return Err(Status::FILE_CLOSED.into());
    }
    end(&call.tree.common, &call.tree.session, &file)?;
    let mut out = Out::with_capacity(60);
    out.u16(60)
        .u16(if facts.is_some() { POST_QUERY } else { 0 })
        .u32(0);
    match facts {
        None => {
            out.zeros(52);
        }
        Some(facts) => {
            out.u64(facts.created).u64(facts.accessed);
            out.u64(facts.written).u64(facts.changed);
            out.u64(facts.allocated)
                .u64(facts.size)
                .u32(facts.attributes);
        }
    }
    Ok(out.done())
}

/// Answers FLUSH.
pub(crate) fn flush(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 24 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    c.skip(6)?;
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    file.need_any(access::WRITES)?;
    call.tree.session.fsync(file.open, false)?;
    Ok(vec![4, 0, 0, 0])
}

/// Answers READ.
pub(crate) fn read(call: &mut Call<'_>) -> Answer<Body> {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 49 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    c.skip(2)?;
    let (len, offset) = (c.u32()?, c.u64()?);
    let id = FileId::read(&mut c)?;
    let minimum = c.u32()?;
    let file = call.named(id)?;
    if len > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    file.need_file()?;
    file.need_any(access::READ_DATA | access::EXECUTE)?;
    let len64 = u64::from(len);
    if offset > OFFSET_MAX || offset.saturating_add(len64) > OFFSET_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let session = call.waiting();
    check_locks(&session, file.open, offset, len64, false)?;
    let before = file.frozen.lock().accessed;
    /// The length of the response's fixed part.
    const FIXED: usize = 16;
    /// Where the data begins; also `DataOffset`.
    const DATA_AT: usize = Body::ROOM + FIXED;
    let mut message = call.buffer(DATA_AT.saturating_add(len as usize));
    let room = message.get_mut(DATA_AT..).unwrap_or_default();
    let n = session.read(file.open, offset, room)?;
    if (len > 0 && n == 0) || n < minimum as usize {
        call.link.buffers().give(message);
        return Err(Status::END_OF_FILE.into());
    }
    if before.is_some() {
        thaw(&session, &file)?;
    }
    let position = offset.saturating_add(n as u64);
    file.position.store(position, Ordering::Relaxed);
    message.truncate(DATA_AT.saturating_add(n));
    let mut head = Out::with_capacity(FIXED);
    head.u16(17).u8(DATA_AT as u8).u8(0);
    head.u32(len32(n)).u32(0).u32(0);
    let fixed = message.iter_mut().skip(Body::ROOM);
    for (to, from) in fixed.zip(head.done()) {
        *to = from;
    }
    Ok(Body::of_message(message))
}

/// Answers WRITE.
pub(crate) fn write(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 49 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (data_at, len, offset) = (c.u16()?, c.u32()?, c.u64()?);
    let id = FileId::read(&mut c)?;
    c.skip(12)?;
    let flags = c.u32()?;
    let file = call.named(id)?;
    if len > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let data = call.part(data_at.into(), len as usize)?;
    file.need_file()?;
    file.need_any(access::WRITES)?;
    let session = call.waiting();
    write_at(&session, &file, offset, data)?;
    if flags & WRITE_THROUGH != 0 || file.writes_through() {
        session.fsync(file.open, true)?;
    }
    written(call.tree, &session, &file)?;
    let mut out = Out::with_capacity(16);
    out.u16(17).u16(0).u32(len).u32(0).u32(0);
    Ok(out.done())
}

/// Writes, if locks and rights permit it.
///
/// # Errors
/// `INVALID_PARAMETER` past the greatest offset; `FILE_LOCK_CONFLICT`; `ACCESS_DENIED` before the
/// file's end if it was opened only for appending.
fn write_at(session: &Session, file: &File, offset: u64, data: &[u8]) -> Result<(), Failure> {
    let len = data.len() as u64;
    if offset > OFFSET_MAX || offset.saturating_add(len) > OFFSET_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    if data.is_empty() {
        return Ok(());
    }
    let appends_only = file.access & access::WRITES == access::APPEND_DATA;
    if appends_only && offset < session.getattr_open(file.open)?.size {
        return Err(Status::ACCESS_DENIED.into());
    }
    check_locks(session, file.open, offset, len, true)?;
    session.write(file.open, Some(offset), data)?;
    Ok(())
}

/// Notifies watches after a change of the file's data through this open. Restores times that the
/// client has set explicitly.
pub(crate) fn written(tree: &Tree, session: &Session, file: &File) -> Result<(), Failure> {
    thaw(session, file)?;
    keep_change_time(tree, file)?;
    let watches = &tree.common.watches;
    if !watches.is_empty() {
        let path = file.path.lock().components();
        watches.changed(tree.by(), &path, filter::SIZE | filter::LAST_WRITE);
    }
    Ok(())
}

/// Restores the time of change, if the client has set it explicitly.
pub(crate) fn keep_change_time(tree: &Tree, file: &File) -> Result<(), Failure> {
    let changed = file.frozen.lock().changed;
    if let Some(changed) = changed {
        let attr = tree.session.getattr(file.node)?;
        tree.common.set_change_time(&attr, changed);
    }
    Ok(())
}

/// Restores the times that the client has set explicitly.
fn thaw(session: &Session, file: &File) -> Result<(), Failure> {
    let frozen = *file.frozen.lock();
    if frozen.written.is_some() || frozen.accessed.is_some() {
        let set = SetAttr {
            mtime: frozen.written.map(SetTime::To),
            atime: frozen.accessed.map(SetTime::To),
            ..SetAttr::default()
        };
        session.setattr(file.node, &set)?;
    }
    Ok(())
}

/// Checks that no byte-range lock conflicts.
///
/// # Errors
/// `FILE_LOCK_CONFLICT`.
pub(crate) fn check_locks(
    session: &Session,
    open: OpenId,
    offset: u64,
    len: u64,
    writes: bool,
) -> CoreResult<()> {
    if len == 0 {
        return Ok(());
    }
    // Exact locks belong to the open itself, so the owner's number is not used.
    session.check_io(open, Range::new(offset, len), writes, 0)
}

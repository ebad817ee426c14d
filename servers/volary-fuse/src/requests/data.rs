//! Requests about content: open, read, write, make durable, allocate.

use crate::kernel::types::{self, IO_MAX, SIZE_MAX};
use crate::requests::caller::Caller;
use crate::requests::counts::RequestKind;
use crate::requests::reply::plain;
use crate::requests::server::Server;
use fuser::{FileHandle, INodeNo, ReplyData, WriteFlags};
use rustix::fs::FallocateFlags;
use std::cell::RefCell;
use volary_core::{Caps, Kind, OpenId, Place, Result, SetAttr};
use volary_session::Session;

const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// The buffer for reads. It is as large as the largest so far, up to [`IO_MAX`].
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A part of an open file.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) open: OpenId,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Server {
    /// Opens a file by the flags of `open(2)`. The kernel determines the offset of appended data
    /// itself, and truncates the file after the open.
    pub(crate) fn open_file(&self, req: &Caller, node: INodeNo, flags: i32) -> Result<OpenId> {
        let node = self.node(node)?;
        let mode = types::mode(flags, self.told.wishes.write_back);
        self.sessions.of(req).open(node, mode)
    }

    /// Lets the kernel ask for the attributes of a file again that was just opened. The open may
    /// have found other content, of which a read would give no more than the size from before.
    pub(crate) fn look_anew(&self, node: INodeNo) {
        if let Some(notifier) = self.notifier.get() {
            // A negative offset drops only the attributes. An error does not matter: the kernel
            // need not drop what it does not know.
            let _ = notifier.inval_inode(node, -1, 0);
        }
    }

    /// Reads a part, and passes the bytes to `take`.
    pub(crate) fn read_part<T>(
        &self,
        req: &Caller,
        part: Part,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let len = part.len.min(IO_MAX.into()) as usize;
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            let room = &mut buffer[..len];
            let count = self.sessions.of(req).read(part.open, part.offset, room)?;
            Ok(take(&room[..count]))
        })
    }

    /// Reads a part, and replies straight from the buffer.
    pub(crate) fn reply_part(&self, req: &Caller, part: Part, reply: ReplyData) {
        let mut reply = Some(reply);
        let answer = self.answer(RequestKind::Read, || {
            self.read_part(req, part, |data| {
                if let Some(reply) = reply.take() {
                    reply.data(data);
                }
            })
        });
        if let (Err(e), Some(reply)) = (answer, reply) {
            reply.error(plain(&e));
        }
    }

    /// Writes all of `data`. Writes from the kernel's cache have no caller.
    pub(crate) fn write_part(
        &self,
        req: &Caller,
        open: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<u32> {
        check_end(offset, data.len() as u64)?;
        let session = if flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            self.sessions.own()
        } else {
            self.sessions.of(req)
        };
        let open = OpenId(open.0);
        let kills = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        self.take_privileges(&session, open, kills)?;
        session.write(open, Some(offset), data)?;
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
    }

    /// Removes set-uid, set-gid and capabilities from a file that is about to be written. The
    /// kernel leaves this to the server (`FUSE_HANDLE_KILLPRIV_V2`), but keeps using its cached
    /// mode. So it is notified before the answer, and no program runs with the old bits afterwards.
    fn take_privileges(&self, session: &Session, open: OpenId, also_roots: bool) -> Result<()> {
        if session.take_privileges(open, also_roots)?
            && let Some(notifier) = self.notifier.get()
        {
            let (node, _) = session.opened(open)?;
            // This keeps cached data. An error does not matter: the kernel need not drop what it
            // does not know.
            let _ = notifier.inval_inode(INodeNo(self.nodes.number(node)), -1, 0);
        }
        Ok(())
    }

    pub(crate) fn allocate_part(&self, req: &Caller, part: Part, mode: i32) -> Result<()> {
        check_end(part.offset, part.len)?;
        let session = self.sessions.of(req);
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        let keeps = FallocateFlags::KEEP_SIZE;
        let hole = FallocateFlags::PUNCH_HOLE | keeps;
        if flags == hole {
            self.take_privileges(&session, part.open, false)?;
            return session.allocate(part.open, part.offset, part.len, true);
        }
        if !(flags.is_empty() || flags == keeps) || !self.told.caps.has(Caps::PREALLOCATE) {
            return Err(Kind::Unsupported.into());
        }
        self.take_privileges(&session, part.open, false)?;
        session.allocate(part.open, part.offset, part.len, false)?;
        let end = part.offset + part.len;
        if flags.is_empty() && session.getattr_open(part.open)?.size < end {
            session.setattr_open(part.open, &SetAttr::size(end))?;
        }
        Ok(())
    }

    /// Copies within the volume, without passing data through the kernel. Returns the bytes copied.
    /// These are fewer than requested at the end of the source, or if an error occurs after the
    /// first ones. The source ends where it ended before the call, so that a copy within a file
    /// does not copy its own output.
    pub(crate) fn copy_part(&self, req: &Caller, from: Part, to: OpenId, at: u64) -> Result<u32> {
        let session = self.sessions.of(req);
        let left = session
            .getattr_open(from.open)?
            .size
            .saturating_sub(from.offset);
        let len = from.len.min(u64::from(u32::MAX - IO_MAX)).min(left);
        check_end(at, len)?;
        self.take_privileges(&session, to, false)?;
        let mut done = 0;
        while done < len {
            let part = Part {
                offset: from.offset.saturating_add(done),
                len: len - done,
                ..from
            };
            let copied = self.read_part(req, part, |data| {
                session
                    .write(to, Some(at + done), data)
                    .map(|_| data.len() as u64)
            });
            match copied.and_then(|inner| inner) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(e) if done == 0 => return Err(e),
                Err(_) => break,
            }
        }
        Ok(u32::try_from(done).unwrap_or(u32::MAX))
    }

    /// Returns where data begins (`SEEK_DATA`) or ends (`SEEK_HOLE`) from `offset` on.
    ///
    /// # Errors
    /// `Invalid` for another `whence`; `NotFound` before the file's start and past its end, as on
    /// Linux's own file systems, and if there is no more data.
    pub(crate) fn seek(&self, req: &Caller, open: OpenId, offset: i64, whence: i32) -> Result<u64> {
        let (SEEK_DATA | SEEK_HOLE) = whence else {
            return Err(Kind::Invalid.into());
        };
        let offset = u64::try_from(offset).map_err(|_| Kind::NotFound)?;
        let data = whence == SEEK_DATA;
        let session = self.sessions.of(req);
        let size = session.getattr_open(open)?.size.min(SIZE_MAX);
        if offset >= size {
            return Err(Kind::NotFound.into());
        }
        let mut extents = Vec::new();
        session.extents(open, offset, size - offset, &mut extents)?;
        let wanted = extents
            .iter()
            .find(|extent| (extent.place == Place::Hole) != data);
        match wanted {
            Some(extent) => Ok(extent.offset.max(offset)),
            None if data => Err(Kind::NotFound.into()),
            None => Ok(size),
        }
    }
}

/// Checks the end of a part.
///
/// # Errors
/// `TooBig` if the part ends past the greatest size that the kernel supports.
fn check_end(offset: u64, len: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        _ => Err(Kind::TooBig.into()),
    }
}

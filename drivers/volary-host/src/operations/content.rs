//! Content: reading, writing, allocating, and finding holes.

use crate::held::attachment::Attachment;
use crate::held::opens::{Opened, Opens};
use crate::kernel::error::from_errno;
use crate::kernel::stat::look;
use crate::operations::places;
use rustix::fs::{Advice, FallocateFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::sync::Arc;
use volary_core::{Extent, Kind, OpenId, Result};

/// The content of open files.
pub(crate) struct Content {
    attachment: Arc<Attachment>,
    opens: Arc<Opens>,
    tells_places: bool,
}

impl Content {
    pub(crate) fn new(attachment: Arc<Attachment>, opens: Arc<Opens>, tells_places: bool) -> Self {
        Self {
            attachment,
            opens,
            tells_places,
        }
    }

    /// Returns an open that permits writing.
    ///
    /// # Errors
    /// `Stale`, `IsDir`; `ReadOnly`, `Access`.
    fn file_to_write(&self, id: OpenId) -> Result<Arc<Opened>> {
        let open = self.opens.file(id)?;
        if !open.writes() {
            self.attachment.check_writable()?;
            return Err(Kind::Access.into());
        }
        Ok(open)
    }

    /// See [`read`](volary_core::FileSystem::read).
    pub(crate) fn read(&self, id: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let open = self.opens.file(id)?;
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            // The host refuses ranges past the greatest offset.
            let room = usize::try_from(OFFSET_MAX.saturating_sub(at)).unwrap_or(usize::MAX);
            let len = rest.len().min(room);
            let Some(rest) = rest.get_mut(..len).filter(|rest| !rest.is_empty()) else {
                break;
            };
            match rustix::io::pread(&open.fd, rest, at) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(from_errno(e)),
            }
        }
        Ok(done)
    }

    /// Tells the host that a range will be read. This is only a hint, and the read reports any
    /// error.
    pub(crate) fn advise(&self, id: OpenId, offset: u64, len: u64) {
        if let Ok(open) = self.opens.file(id)
            && let Some(len) = NonZeroU64::new(len)
        {
            let _ = rustix::fs::fadvise(&open.fd, offset, Some(len), Advice::WillNeed);
        }
    }

    /// See [`write`](volary_core::FileSystem::write).
    pub(crate) fn write(&self, id: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let open = self.file_to_write(id)?;
        let Some(offset) = offset else {
            return self.append(&open, data);
        };
        self.check_range(offset, data.len() as u64)?;
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pwrite(&open.fd, rest, offset + done as u64) {
                Ok(0) => return Err(Kind::NoSpace.into()),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(from_errno(e)),
            }
        }
        Ok(offset + data.len() as u64)
    }

    /// Appends at the current end of the file. The descriptor's own offset then tells where that
    /// was.
    fn append(&self, open: &Opened, data: &[u8]) -> Result<u64> {
        let _offset = open.listing.lock();
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let (parts, here) = ([IoSlice::new(rest)], u64::MAX);
            match rustix::io::pwritev2(&open.fd, &parts, here, ReadWriteFlags::APPEND) {
                Ok(0) => return Err(Kind::NoSpace.into()),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(from_errno(e)),
            }
        }
        if data.is_empty() {
            return Ok(look(&open.fd, b"")?.stx_size);
        }
        rustix::fs::tell(&open.fd).map_err(from_errno)
    }

    /// Checks that a file can have this range.
    ///
    /// # Errors
    /// `TooBig` for a range that reaches past the greatest size.
    fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) => self.attachment.check_size(end),
            None => Err(Kind::TooBig.into()),
        }
    }

    /// See [`fsync`](volary_core::FileSystem::fsync).
    pub(crate) fn sync(&self, id: OpenId, data_only: bool) -> Result<()> {
        let open = self.opens.get(id)?;
        let done = if data_only {
            rustix::fs::fdatasync(&open.fd)
        } else {
            rustix::fs::fsync(&open.fd)
        };
        done.map_err(from_errno)
    }

    /// See [`allocate`](volary_core::FileSystem::allocate).
    pub(crate) fn allocate(&self, id: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        let open = self.file_to_write(id)?;
        self.check_range(offset, len)?;
        let mut flags = FallocateFlags::KEEP_SIZE;
        flags.set(FallocateFlags::PUNCH_HOLE, hole);
        rustix::fs::fallocate(&open.fd, flags, offset, len).map_err(from_errno)
    }

    /// See [`extents`](volary_core::FileSystem::extents).
    pub(crate) fn extents(
        &self,
        id: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let open = self.opens.file(id)?;
        places::extents(&open, offset, len, self.tells_places, out)
    }
}

const OFFSET_MAX: u64 = i64::MAX as u64;

//! Content: open, read, write, allocate, where the holes are.

use crate::error::{from_errno, from_errno_on_node};
use crate::opens::Opened;
use crate::proc::path_of;
use crate::resolve::{SAFE, open_dir};
use crate::volume::Host;
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, FallocateFlags, Mode as HostMode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::sync::Arc;
use volary_core::{FileKind, Kind, Mode, NodeId, OpenId, Result};

impl Host {
    /// See [`open`](volary_core::FileSystem::open).
    pub(crate) fn open_node(&self, node: NodeId, mode: Mode) -> Result<OpenId> {
        let (kind, fd) = self.descriptor(node, mode)?;
        Ok(self.enter(node, kind, mode, fd))
    }

    /// Returns the kind of a node, and a descriptor for an open of it.
    ///
    /// # Errors
    /// As [`open`](volary_core::FileSystem::open).
    pub(crate) fn descriptor(&self, node: NodeId, mode: Mode) -> Result<(FileKind, OwnedFd)> {
        let writes = mode != Mode::Read;
        let seen = if node == self.root {
            None
        } else {
            self.nodes.get(node)
        };
        // What is known to be a file is opened at once.
        if let Some(seen) = seen
            && seen.kind == FileKind::File
            && self.ids.open_by_handle()
        {
            self.check_open(writes, FileKind::File)?;
            let fd = self.nodes.with_descriptors(|| {
                let fd = self.open_id(node, SAFE | flags_of(mode))?;
                self.check_number(&fd).map(|()| fd)
            })?;
            return Ok((FileKind::File, fd));
        }
        let (kind, fd) = self.node(node)?;
        self.check_open(writes, kind)?;
        let fd = self.nodes.with_descriptors(|| {
            let fd = match kind {
                FileKind::Dir => open_dir(&fd)?,
                _ => {
                    self.attr_by(node, &fd)?;
                    rustix::fs::open(path_of(&fd), SAFE | flags_of(mode), HostMode::empty())
                        .map_err(from_errno_on_node)?
                }
            };
            self.check_number(&fd).map(|()| fd)
        })?;
        Ok((kind, fd))
    }

    fn check_open(&self, writes: bool, kind: FileKind) -> Result<()> {
        self.check_attached()?;
        match kind {
            FileKind::Dir if writes => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if writes {
            self.check_writable()?;
        }
        Ok(())
    }

    pub(crate) fn enter(&self, node: NodeId, kind: FileKind, mode: Mode, fd: OwnedFd) -> OpenId {
        let open = self.opens.add(node, kind, mode, fd);
        if node != self.root {
            self.nodes.add_open(&open);
        }
        open.id
    }

    /// See [`close`](volary_core::FileSystem::close).
    pub(crate) fn end_open(&self, id: OpenId) -> Result<()> {
        let open = self.opens.remove(id)?;
        self.locks.end_open(&open);
        // Of what has no name, nothing is remembered; and a descriptor held beside
        // the open would keep its room. Who takes the last name away meanwhile
        // looks after that whether it is open.
        let last = self.nodes.end_open(&open);
        if last && crate::stat::look(&open.fd, b"").is_ok_and(|stat| stat.stx_nlink == 0) {
            self.nodes.remove(open.node);
        }
        Ok(())
    }

    /// Returns an open file.
    ///
    /// # Errors
    /// `Stale`; `IsDir`.
    pub(crate) fn file(&self, id: OpenId) -> Result<Arc<Opened>> {
        let open = self.opens.get(id)?;
        if open.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        Ok(open)
    }

    fn file_to_write(&self, id: OpenId) -> Result<Arc<Opened>> {
        let open = self.file(id)?;
        if !open.writes() {
            self.check_writable()?;
            return Err(Kind::Access.into());
        }
        Ok(open)
    }

    /// See [`read`](volary_core::FileSystem::read).
    pub(crate) fn read_at(&self, id: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let open = self.file(id)?;
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            // The host refuses ranges past the greatest offset that it has.
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

    /// Tells the host that a range will be read. It is a hint: what goes wrong is told by the read.
    pub(crate) fn advise(&self, id: OpenId, offset: u64, len: u64) {
        if let Ok(open) = self.file(id)
            && let Some(len) = NonZeroU64::new(len)
        {
            let _ = rustix::fs::fadvise(&open.fd, offset, Some(len), Advice::WillNeed);
        }
    }

    /// See [`write`](volary_core::FileSystem::write).
    pub(crate) fn write_at(&self, id: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
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

    /// Writes at the end as it is at that moment; the descriptor's own offset
    /// then tells where that was.
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
            return Ok(crate::stat::look(&open.fd, b"")?.stx_size);
        }
        rustix::fs::tell(&open.fd).map_err(from_errno)
    }

    /// # Errors
    /// `TooBig` for what reaches past the greatest size.
    fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.caps.size_max => Ok(()),
            _ => Err(Kind::TooBig.into()),
        }
    }

    /// See [`fsync`](volary_core::FileSystem::fsync).
    pub(crate) fn sync_open(&self, id: OpenId, data_only: bool) -> Result<()> {
        let open = self.opens.get(id)?;
        let done = if data_only {
            rustix::fs::fdatasync(&open.fd)
        } else {
            rustix::fs::fsync(&open.fd)
        };
        done.map_err(from_errno)
    }

    /// See [`allocate`](volary_core::FileSystem::allocate).
    pub(crate) fn give_room(&self, id: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        let open = self.file_to_write(id)?;
        self.check_range(offset, len)?;
        let mut flags = FallocateFlags::KEEP_SIZE;
        flags.set(FallocateFlags::PUNCH_HOLE, hole);
        rustix::fs::fallocate(&open.fd, flags, offset, len).map_err(from_errno)
    }
}

const OFFSET_MAX: u64 = i64::MAX as u64;

fn flags_of(mode: Mode) -> OFlags {
    match mode {
        Mode::Read => OFlags::RDONLY,
        Mode::Write => OFlags::WRONLY,
        Mode::ReadWrite => OFlags::RDWR,
    }
}

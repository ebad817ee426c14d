//! Copies stretches of a volume's file inside the kernel, from the image to a file of the host.
//! Reading and writing copies twice; the kernel copies once, or not at all if files can share
//! blocks.
//!
//! The driver writes dirty data to the image before it tells where a stretch lies. If the file
//! changes before the copy ends, or if the kernel does not copy, the stretch is read and written in
//! the ordinary way.

use crate::told::observer::Observer;
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use volary_core::{BlockDevice, Extent, NodeId, OpenId, Place as ExtentPlace};
use volary_session::Session;

/// The shortest stretch that the kernel copies; many shorter ones fit into one batch of the
/// ordinary way.
const LEN_MIN: u64 = 128 << 10;

/// The longest stretch of one copy, which bounds how long an interrupt waits.
const LEN_MAX: u64 = 8 << 20;

/// `f_type` of ext4. On it, writing into preallocated space takes three quarters of the processor
/// time. Elsewhere preallocation costs time, or prevents shared blocks.
const EXT4: u64 = 0xef53;

/// How many bytes of a file's extents are asked for at once.
const AHEAD: u64 = 16 << 20;

/// A stretch of a file, and the means to tell whether it has changed.
pub(crate) struct HostRange {
    device: Arc<dyn BlockDevice>,
    /// Byte offset on the device.
    at: u64,
    len: u64,
    session: Session,
    node: NodeId,
    /// The node's change number before its extents were read.
    change: u64,
}

impl fmt::Debug for HostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRange")
            .field("at", &self.at)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl HostRange {
    /// Returns the length in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Lets the host copy the stretch to the current position of `into`, and moves the position
    /// behind the copied bytes. Returns their number: fewer if the host copies no more, and 0 if
    /// the file has changed.
    ///
    /// # Errors
    /// If the position of `into` cannot be restored: its content is then wrong.
    pub(crate) fn copy_to(
        &self,
        into: BorrowedFd<'_>,
        observer: &dyn Observer,
    ) -> Result<u64, Errno> {
        let Some((from, at)) = self.device.in_host_file(self.at, self.len) else {
            return Ok(0);
        };
        let start = rustix::fs::tell(into)?;
        give_room(into, start, self.len);
        let copied = copy(from, at, into, self.len, observer);
        if copied == 0 || self.is_there() {
            return Ok(copied);
        }
        rustix::fs::seek(into, SeekFrom::Start(start))?;
        Ok(0)
    }

    fn is_there(&self) -> bool {
        let now = self.session.getattr(self.node);
        now.is_ok_and(|now| now.change == self.change)
    }
}

/// Preallocates a file's space on the host, if that pays.
fn give_room(file: BorrowedFd<'_>, start: u64, len: u64) {
    let is_ext4 = |stat: rustix::fs::StatFs| u64::try_from(stat.f_type) == Ok(EXT4);
    if rustix::fs::fstatfs(file).is_ok_and(is_ext4) {
        // The write that follows reports any error.
        let _ = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, start, len);
    }
}

/// Copies from byte `at` of a file to the current position of another one. Returns the number of
/// bytes. Between two file systems, copies through a pipe inside the kernel.
fn copy(
    from: BorrowedFd<'_>,
    at: u64,
    into: BorrowedFd<'_>,
    len: u64,
    observer: &dyn Observer,
) -> u64 {
    let mut shares = true;
    let mut copied = 0;
    while copied < len {
        let mut from_at = at + copied;
        let left = usize::try_from(len - copied).unwrap_or(usize::MAX);
        let moved = match shares {
            true => rustix::fs::copy_file_range(from, Some(&mut from_at), into, None, left),
            false => rustix::fs::sendfile(into, from, Some(&mut from_at), left),
        };
        match moved {
            Ok(0) => break,
            Ok(n) => copied += n as u64,
            Err(Errno::INTR) if !observer.is_stopped() => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if shares => {
                shares = false;
            }
            // A read or a write meets the same error, and reports it.
            Err(_) => break,
        }
    }
    copied
}

/// Where the bytes of an open file lie.
pub(crate) struct Places {
    device: Arc<dyn BlockDevice>,
    session: Session,
    /// Known extents of the file, in order, the range they cover, and the change number they are
    /// valid for.
    known: Vec<Extent>,
    range: Range<u64>,
    change: u64,
}

impl Places {
    /// Returns the places for a file of a volume on this device.
    pub(crate) fn new(device: &Arc<dyn BlockDevice>, session: &Session) -> Self {
        Self {
            device: Arc::clone(device),
            session: session.clone(),
            known: Vec::new(),
            range: 0..0,
            change: 0,
        }
    }

    /// Returns the first part of `range` if it is long and lies in a file of the host. The outer
    /// `None` means that the volume or the device cannot tell.
    #[expect(clippy::option_option, reason = "the outer one is who does not say")]
    pub(crate) fn find(
        &mut self,
        open: OpenId,
        node: NodeId,
        range: Range<u64>,
    ) -> Option<Option<HostRange>> {
        if !self.range.contains(&range.start) {
            let end = range.end.min(range.start.saturating_add(AHEAD));
            self.known.clear();
            self.change = self.session.getattr(node).ok()?.change;
            let len = end.saturating_sub(range.start);
            let known = &mut self.known;
            self.session.extents(open, range.start, len, known).ok()?;
            self.range = range.start..end;
        }
        let Some((at, len)) = self.place(&range) else {
            return Some(None);
        };
        self.device.in_host_file(at, len)?;
        Some(Some(HostRange {
            device: Arc::clone(&self.device),
            at,
            len,
            session: self.session.clone(),
            node,
            change: self.change,
        }))
    }

    /// Returns the offset on the device of the beginning of `range`, and how many bytes lie there.
    fn place(&self, range: &Range<u64>) -> Option<(u64, u64)> {
        let before = |extent: &Extent| extent.offset <= range.start;
        let last = self.known.partition_point(before).checked_sub(1)?;
        let extent = self.known.get(last)?;
        let ExtentPlace::Device(place) = extent.place else {
            return None;
        };
        let skip = range.start - extent.offset;
        let left = extent.len.checked_sub(skip)?;
        let len = left.min(range.end - range.start).min(LEN_MAX);
        let at = place.checked_add(skip)?;
        (len >= LEN_MIN).then_some((at, len))
    }
}

#[cfg(test)]
mod tests;

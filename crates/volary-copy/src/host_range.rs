//! Copies stretches of a volume's file inside the kernel, from the image to a file of the host. A read and a write
//! copy twice; the kernel copies once, or not at all where files can share blocks.
//!
//! The driver writes dirty data to the image before it tells where a stretch lies. If the file changes before the
//! copy ends, or if the kernel does not copy, the stretch is read and written in the ordinary way.

use crate::observer::Observer;
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use volary_core::{BlockDevice, Extent, NodeId, OpenId, Place as ExtentPlace};
use volary_session::Session;

/// Shortest stretch that the kernel copies; many shorter ones fit into one batch of the ordinary way.
const LEN_MIN: u64 = 128 << 10;

/// Longest stretch of one copy, which bounds how long an interrupt waits.
const LEN_MAX: u64 = 8 << 20;

/// `f_type` of ext4. There, writing into preallocated room takes three quarters of the processor time; elsewhere
/// preallocation costs time, or prevents shared blocks.
const EXT4: u64 = 0xef53;

/// Bytes for which places are asked at once.
const AHEAD: u64 = 16 << 20;

/// A stretch, and how to find out whether it still is where it was.
pub(crate) struct HostRange {
    device: Arc<dyn BlockDevice>,
    /// Where it is on the device.
    at: u64,
    len: u64,
    session: Session,
    node: NodeId,
    /// The node's count of changes before it was asked where it lies.
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
    /// Returns bytes.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Lets the host copy it to the position of `into`, which then stands behind the bytes that were
    /// copied. Returns how many these are: fewer if the host does not copy more, and 0 if the file
    /// has changed.
    ///
    /// # Errors
    /// If `into` cannot be put back: what it holds is wrong.
    pub(super) fn copy_to(
        &self,
        into: BorrowedFd<'_>,
        observer: &dyn Observer,
    ) -> Result<u64, Errno> {
        let Some((from, at)) = self.device.in_host_file(self.at, self.len) else {
            return Ok(0);
        };
        let start = rustix::fs::tell(into)?;
        give_room(into, (start, self.len));
        let copied = copy((from, at), into, self.len, observer);
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

/// Preallocates a file's room on the host, where that pays.
fn give_room(file: BorrowedFd<'_>, (start, len): (u64, u64)) {
    let is_ext4 = |stat: rustix::fs::StatFs| u64::try_from(stat.f_type) == Ok(EXT4);
    if rustix::fs::fstatfs(file).is_ok_and(is_ext4) {
        // What goes wrong is told by the write.
        let _ = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, start, len);
    }
}

/// Copies from a file to where another one stands; gives how many bytes. Files of two file systems
/// are copied through a pipe of the kernel's.
fn copy(
    (from, at): (BorrowedFd<'_>, u64),
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
            // A read or a write meets it again, and tells of it.
            Err(_) => break,
        }
    }
    copied
}

/// Where the bytes of an open file lie.
pub(super) struct Places {
    device: Arc<dyn BlockDevice>,
    session: Session,
    /// What is known of it, in order, of which range, and at which count of changes.
    known: Vec<Extent>,
    range: Range<u64>,
    change: u64,
}

impl Places {
    /// Of a file of a volume that is on this device.
    pub(super) fn new(device: &Arc<dyn BlockDevice>, session: &Session) -> Self {
        Self {
            device: Arc::clone(device),
            session: session.clone(),
            known: Vec::new(),
            range: 0..0,
            change: 0,
        }
    }

    /// Returns what lies in a file of the host from the beginning of `range` on, if it is long. The outer
    /// `None` is a volume or a device that does not say.
    #[expect(clippy::option_option, reason = "the outer one is who does not say")]
    pub(super) fn find(
        &mut self,
        (open, node): (OpenId, NodeId),
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

    /// Returns where on the device, and how many bytes.
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

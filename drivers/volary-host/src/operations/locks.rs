//! Byte-range locks that other processes of the host see.
//!
//! The host ties such a lock to an open file description, and two descriptions of one process
//! conflict. The session's owners are not tied to opens, and may share a range. So one description
//! for each node holds the union of its owners' locks. A table tells what remains of a range when
//! an owner releases it.

use crate::held::opens::Opened;
use crate::kernel::error::from_errno;
use crate::kernel::proc::path_of;
use crate::kernel::sys::{self, RangeLock};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode as HostMode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{Kind, Lock, NodeId, OpenId, Result};

/// The locks of all nodes that have any.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<NodeId, Held>>);

/// The locks of one node.
struct Held {
    file: Arc<OwnedFd>,
    ranges: Vec<Range>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    owner: u64,
    /// The open through which it was taken.
    open: OpenId,
    start: u64,
    /// The byte after the last one.
    end: u64,
    exclusive: bool,
}

/// The greatest offset that the host knows.
const END: u64 = i64::MAX as u64;

/// Returns a separate description of the open's file for locks. It can hold both kinds of locks, if
/// the host permits opening it so.
fn own_description(open: &Opened) -> Result<OwnedFd> {
    let again = |flags| {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        rustix::fs::open(path_of(&open.fd), flags, HostMode::empty())
    };
    let alone = if open.writes() {
        OFlags::WRONLY
    } else {
        OFlags::RDONLY
    };
    again(OFlags::RDWR)
        .or_else(|_| again(alone))
        .map_err(from_errno)
}

impl Locks {
    /// See [`lock`](volary_core::FileSystem::lock).
    pub(crate) fn set(&self, open: &Opened, lock: Lock) -> Result<()> {
        // A length of 0 means up to the greatest offset.
        let end = match lock.len {
            0 => END,
            len => lock.offset.saturating_add(len).min(END),
        };
        if lock.offset >= end {
            return Err(Kind::Invalid.into());
        }
        let range = Range {
            owner: lock.owner,
            open: open.id,
            start: lock.offset,
            end,
            exclusive: lock.exclusive,
        };
        let mut nodes = self.0.lock();
        if lock.unlock {
            if let Some(held) = nodes.get_mut(&open.node) {
                held.give_back(|r| r.owner == range.owner, range.start, range.end)?;
                if held.ranges.is_empty() {
                    nodes.remove(&open.node);
                }
            }
            return Ok(());
        }
        let held = match nodes.entry(open.node) {
            std::collections::hash_map::Entry::Occupied(slot) => slot.into_mut(),
            std::collections::hash_map::Entry::Vacant(slot) => slot.insert(Held {
                file: Arc::new(own_description(open)?),
                ranges: Vec::new(),
            }),
        };
        let done = if lock.test {
            held.test(&range)
        } else {
            held.take(range)
        };
        if held.ranges.is_empty() {
            nodes.remove(&open.node);
        }
        done
    }

    /// Releases the locks that were taken through an open.
    pub(crate) fn end_open(&self, open: &Opened) {
        let mut nodes = self.0.lock();
        let Some(held) = nodes.get_mut(&open.node) else {
            return;
        };
        // A lock that cannot be released now is released with the description.
        let _ = held.give_back(|r| r.open == open.id, 0, END);
        if held.ranges.is_empty() {
            nodes.remove(&open.node);
        }
    }

    /// Releases all locks.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl Held {
    fn take(&mut self, range: Range) -> Result<()> {
        let lock = if range.exclusive {
            RangeLock::Exclusive
        } else {
            RangeLock::Shared
        };
        self.set(range.start, range.end, lock)?;
        self.cut(|r| r.owner == range.owner, range.start, range.end);
        self.ranges.push(range);
        Ok(())
    }

    fn test(&self, range: &Range) -> Result<()> {
        let lock = if range.exclusive {
            RangeLock::Exclusive
        } else {
            RangeLock::Shared
        };
        let (start, len) = host_range(range.start, range.end);
        match sys::could_lock(&self.file, start, len, lock) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Kind::Locked.into()),
            Err(e) => Err(from_errno(e)),
        }
    }

    /// Releases the locks on a range for which `whose` is true. Then restores the host's lock for
    /// other owners in that range.
    fn give_back(&mut self, whose: impl Fn(&Range) -> bool, start: u64, end: u64) -> Result<()> {
        let taken = self.cut(whose, start, end);
        for (start, end) in taken {
            self.set(start, end, RangeLock::None)?;
            let left = self
                .ranges
                .iter()
                .filter(|r| r.start < end && r.end > start);
            for range in left {
                // Where two owners overlapped, both locks are shared.
                let (start, end) = (range.start.max(start), range.end.min(end));
                self.set(start, end, RangeLock::Shared)?;
            }
        }
        Ok(())
    }

    /// Removes a range of the matching locks from the table. Returns the parts that they had
    /// locked.
    fn cut(&mut self, whose: impl Fn(&Range) -> bool, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        let mut left = Vec::with_capacity(self.ranges.len() + 1);
        for range in self.ranges.drain(..) {
            if !whose(&range) || range.end <= start || range.start >= end {
                left.push(range);
                continue;
            }
            taken.push((range.start.max(start), range.end.min(end)));
            if range.start < start {
                left.push(Range {
                    end: start,
                    ..range
                });
            }
            if range.end > end {
                left.push(Range {
                    start: end,
                    ..range
                });
            }
        }
        self.ranges = left;
        taken
    }

    fn set(&self, start: u64, end: u64, lock: RangeLock) -> Result<()> {
        let (start, len) = host_range(start, end);
        sys::set_lock(&self.file, start, len, lock).map_err(|e| match e {
            Errno::AGAIN | Errno::ACCESS => Kind::Locked.into(),
            Errno::BADF => Kind::Access.into(),
            e => from_errno(e),
        })
    }
}

/// Returns a range in the host's form, in which a length of 0 means up to the end of any file.
fn host_range(start: u64, end: u64) -> (i64, i64) {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let len = if end >= END {
        0
    } else {
        signed(end.saturating_sub(start))
    };
    (signed(start), len)
}

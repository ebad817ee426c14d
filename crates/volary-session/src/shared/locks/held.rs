//! [`HeldLock`]: a lock, whose it is, and of which bytes.

use crate::shared::events::ClientId;
use std::hash::{DefaultHasher, Hash, Hasher};
use volary_core::OpenId;

/// A range of bytes: the first and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first byte.
    pub first: u64,
    /// The last byte, not before the first.
    pub last: u64,
}

impl Range {
    /// Every byte that a file can have.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// Returns the range of `len` bytes from `offset` on; to the end of all files if `len` is 0 or
    /// more than a file can have.
    pub const fn new(offset: u64, len: u64) -> Self {
        let last = match len {
            0 => u64::MAX,
            _ => offset.saturating_add(len - 1),
        };
        Self {
            first: offset,
            last,
        }
    }

    /// Returns an empty range before byte `offset`. An exact lock of it conflicts with one that
    /// covers both neighbours. `None` at 0, which has one neighbour.
    pub const fn empty_at(offset: u64) -> Option<Self> {
        match offset.checked_sub(1) {
            Some(last) => Some(Self {
                first: offset,
                last,
            }),
            None => None,
        }
    }

    /// Returns whether there is no byte in it.
    pub const fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Returns whether they have a byte in common, or an empty one lies within the
    /// other.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns how many bytes, as a driver is told: 0 if it goes to the end of all that a file can have.
    pub(crate) const fn lock_len(self) -> u64 {
        if self.last == u64::MAX {
            0
        } else {
            self.last - self.first + 1
        }
    }
}

/// The owner of a lock. Locks of one owner never conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockOwner {
    /// The client among whose owners this is; `None` for sessions without one.
    pub client: Option<ClientId>,
    /// The client's number for the owner: a process, say.
    pub number: u64,
}

impl LockOwner {
    /// Returns the owner of an open's exact locks; no client has the number 0.
    pub(crate) fn exact(open: OpenId) -> Self {
        Self {
            client: Some(ClientId(0)),
            number: open.0,
        }
    }

    /// Returns what a file system that keeps locks with others knows the owner by: two owners are not the
    /// same because their clients number them alike.
    pub(crate) fn below(&self) -> u64 {
        let Some(client) = self.client else {
            return self.number;
        };
        let mut hasher = DefaultHasher::new();
        (client, self.number).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the owner of an open's whole-file lock.
    pub(crate) fn of_open(open: OpenId) -> Self {
        Self {
            client: None,
            number: open.0,
        }
    }
}

/// A lock that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// Whose.
    pub owner: LockOwner,
    /// Which bytes.
    pub range: Range,
    /// Exclusive, or shared.
    pub exclusive: bool,
    /// Kept as it was asked for, as [`lock_exact`](crate::Session::lock_exact)
    /// takes it.
    pub exact: bool,
}

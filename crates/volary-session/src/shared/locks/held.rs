//! [`HeldLock`]: a lock, its owner and its bytes.

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

    /// Returns the range of `len` bytes from `offset` on. Without an end if `len` is 0 or the range
    /// would pass the largest offset.
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
    /// covers both neighbouring bytes. `None` at 0, which has only one neighbour.
    pub const fn empty_at(offset: u64) -> Option<Self> {
        match offset.checked_sub(1) {
            Some(last) => Some(Self {
                first: offset,
                last,
            }),
            None => None,
        }
    }

    /// Returns whether the range has no bytes.
    pub const fn is_empty(self) -> bool {
        self.first > self.last
    }

    /// Returns whether the ranges have a byte in common, or an empty one lies within the other.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns the length as drivers expect it: 0 for a range without an end.
    pub(crate) const fn lock_len(self) -> u64 {
        if self.last == u64::MAX {
            0
        } else {
            self.last - self.first + 1
        }
    }
}

/// The owner of a lock. Locks of one owner conflict only if they are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockOwner {
    /// The client that numbers this owner; `None` for sessions without a client.
    pub client: Option<ClientId>,
    /// The client's number for the owner, such as a process.
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

    /// Returns the owner's number for a file system that shares locks with other hosts. It differs
    /// between clients even if they use the same number.
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

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The owner.
    pub owner: LockOwner,
    /// The bytes.
    pub range: Range,
    /// Whether it is exclusive or shared.
    pub exclusive: bool,
    /// It is kept as requested, never joined or split: see
    /// [`lock_exact`](crate::Session::lock_exact).
    pub exact: bool,
}

//! Leases: what a client may keep to itself until it is told otherwise.
//!
//! A lease lets a client answer its programs by itself: reads out of its cache
//! ([`LeaseBits::READ`]), opens and closes without telling ([`LeaseBits::HANDLE`]),
//! writes gathered in its cache ([`LeaseBits::WRITE`]). It belongs to a key of
//! the client's choice ([`LeaseKey`]), is for one node, is had by all opens of
//! that key, and ends with the last of them.
//!
//! # What is granted
//!
//! - Without `READ` nothing is. On a directory `WRITE` is not.
//! - `WRITE` while nobody of another key has the node open for more than its
//!   attributes, or has a lease; nothing while another has `WRITE`. Nothing new
//!   while there are byte-range locks on the node.
//! - Where nodes change behind the session's back, what the session can know of:
//!   nothing, or, if the driver tells ([`Caps::WATCH`]), all but `WRITE`.
//! - Asked for again, a lease grows if all that is asked for can be granted and
//!   includes all that is held; it never shrinks by asking. It does not change
//!   while it is breaking.
//! - An oplock ([`LeaseSink::is_oplock`]) without `WRITE` is not granted beside
//!   others' `HANDLE`, nor `HANDLE` beside others' oplocks.
//!
//! # What breaks a lease of another key
//!
//! | what another does | takes away | waits until this is given up |
//! |---|---|---|
//! | opens it for more than attributes | W | W |
//! | opens and cuts it, writes, resizes, allocates, locks bytes | R, H, W | W |
//! | reads it | W | W |
//! | cannot open it for its share mode (and looks again then) | H | H |
//! | renames, removes, replaces, links it, lets it go with its last open | H | H |
//! | changes entries of the directory, or a file in it through an open with a place | R, H, W | nothing |
//! | changes it elsewhere, and the driver tells | R, H, W | nothing |
//!
//! A write through its own open takes away an oplock that is no more than `READ`.
//! Who has begun to wait for a lease waits until no more of it is being taken away.
//!
//! A lease with no more than `READ` is gone as soon as it is broken. Any other
//! is held until its client acknowledges, ends the opens, or has had
//! [`lease_timeout`](crate::VolumeOptions::lease_timeout); then it is gone.
//! While it breaks, more may be taken away: the client is told of that when it
//! has acknowledged, in steps: first what is beside `READ`, then that. The epoch
//! grows with each change of what is granted that the client is told of, but not
//! with further steps of one break.
//!
//! Sources: MS-SMB2 3.3.1.4, 3.3.5.9.8, 3.3.5.22.2; MS-FSA 2.1.4.12, 2.1.5.18.
//!
//! [`Caps::WATCH`]: volary_core::Caps::WATCH

mod held;
mod keys;

use std::ops::{BitAnd, BitOr};
use std::sync::Arc;
use volary_core::OpenId;

pub(crate) use held::Held;
pub(crate) use keys::Keys;

/// What a lease lets its holder do: a set of bits, as SMB numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaseBits(pub u8);

impl LeaseBits {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// To read out of its cache (R).
    pub const READ: Self = Self(1);
    /// To keep it open, and open it again, without telling (H).
    pub const HANDLE: Self = Self(2);
    /// To gather writes in its cache (W).
    pub const WRITE: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Returns whether all of `bits` are in it.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }
    /// Returns whether any of `bits` is in it.
    pub const fn has_any(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }
    /// Removes `bits`.
    #[must_use]
    pub const fn without(self, bits: Self) -> Self {
        Self(self.0 & !bits.0)
    }
}

impl BitOr for LeaseBits {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for LeaseBits {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Whose lease: a client, and the client's key for the file. An oplock is a
/// lease whose key is its own open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseKey {
    /// The client.
    pub client: [u8; 16],
    /// The client's key, for one node at a time.
    pub key: [u8; 16],
}

/// What has become of a lease that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is held now.
    pub granted: LeaseBits,
    /// How often that has changed: 1 for a new lease.
    pub epoch: u16,
    /// It is being taken away: what is granted holds until that is acknowledged.
    pub breaking: bool,
}

/// A lease is taken away, in whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// Whose.
    pub key: LeaseKey,
    /// What was held.
    pub from: LeaseBits,
    /// What may be kept.
    pub to: LeaseBits,
    /// Of the state `to`.
    pub epoch: u16,
    /// The lease is held until it is acknowledged
    /// ([`Session::acknowledge`](crate::Session::acknowledge)). Otherwise it is
    /// gone already.
    pub must_ack: bool,
    /// One of its opens.
    pub open: OpenId,
}

/// Tells a client of its leases. Called by the thread that breaks the lease,
/// with no lock of the volume held; a sink should only note it and send.
pub trait LeaseSink: Send + Sync {
    /// One lease is taken away.
    fn broken(&self, broken: &LeaseBreak);

    /// Returns whether it is an oplock, which is one of R, RW and RHW and when broken
    /// becomes R or nothing.
    fn is_oplock(&self) -> bool {
        false
    }
}

/// A break to be told, once no lock is held.
pub(crate) struct Notice {
    pub(crate) sink: Arc<dyn LeaseSink>,
    pub(crate) broken: LeaseBreak,
}

impl Notice {
    pub(crate) fn tell_all(notices: &[Self]) {
        for notice in notices {
            notice.sink.broken(&notice.broken);
        }
    }
}

/// What an operation does to others' leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Impact {
    /// What it takes away.
    pub(crate) strips: LeaseBits,
    /// What it has to wait for.
    pub(crate) awaits: LeaseBits,
}

impl Impact {
    const fn new(strips: LeaseBits, awaits: LeaseBits) -> Self {
        Self { strips, awaits }
    }
    /// Opening, and reading.
    pub(crate) const READ: Self = Self::new(LeaseBits::WRITE, LeaseBits::WRITE);
    /// Changing what it holds.
    pub(crate) const WRITE: Self = Self::new(LeaseBits::ALL, LeaseBits::WRITE);
    /// Changing its names; opening against a share mode.
    pub(crate) const NAME: Self = Self::new(LeaseBits::HANDLE, LeaseBits::HANDLE);
    /// A change that has happened.
    pub(crate) const CHANGED: Self = Self::new(LeaseBits::ALL, LeaseBits::NONE);
}

//! Leases: what a client may cache until it is told otherwise.
//!
//! A lease lets a client answer its programs by itself. It reads out of its cache
//! ([`LeaseBits::READ`]), opens and closes without telling ([`LeaseBits::HANDLE`]), and gathers
//! writes in its cache ([`LeaseBits::WRITE`]). A lease belongs to a key of the client's choice
//! ([`LeaseKey`]) and is for one node. All opens of that key share it, and it ends with the last of
//! them.
//!
//! # What is granted
//!
//! - Nothing is granted without `READ`, and no `WRITE` on a directory.
//! - `WRITE` is granted while no open of another key wants more than attributes, and no other key
//!   has a lease.
//! - Nothing is granted while another key has `WRITE`, and nothing new while there are byte-range
//!   locks on the node.
//! - If nodes can change without the session's knowledge, nothing is granted, or, if the driver
//!   reports such changes ([`Caps::WATCH`]), all but `WRITE`.
//! - A further request lets a lease grow if all that is requested can be granted and includes all
//!   that is held. A request never shrinks it, and changes nothing while it is breaking.
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
//! | changes entries of the directory, or a file in it through an open with a place | R, H, W |
//! nothing |
//! | changes it elsewhere, and the driver tells | R, H, W | nothing |
//!
//! A write through its own open takes away an oplock of `READ` alone. A caller that has begun to
//! wait for a lease waits until no more of it is being taken away.
//!
//! A lease with no more than `READ` is gone as soon as it is broken. Any other is held until its
//! client acknowledges, ends the opens, or has had
//! [`lease_timeout`](crate::VolumeOptions::lease_timeout); then it is gone. While it breaks, more
//! may be taken away. The client is told of that when it has acknowledged, in steps: first all but
//! `READ`, then `READ`. The epoch grows with each change of the granted bits that the client is
//! told of, but not with further steps of one break.
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
    /// No rights.
    pub const NONE: Self = Self(0);
    /// To read from its cache (R).
    pub const READ: Self = Self(1);
    /// To keep the node open, and open it again, without telling (H).
    pub const HANDLE: Self = Self(2);
    /// To gather writes in its cache (W).
    pub const WRITE: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Returns whether all of `bits` are set.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }
    /// Returns whether any of `bits` is set.
    pub const fn has_any(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }
    /// Returns the set without `bits`.
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

/// The holder of a lease: a client, and the client's key for the file. An oplock is a lease whose
/// key belongs to a single open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseKey {
    /// The client.
    pub client: [u8; 16],
    /// The client's key, for one node at a time.
    pub key: [u8; 16],
}

/// The state of a lease that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The bits that are held now.
    pub granted: LeaseBits,
    /// Counts the changes of the bits: 1 for a new lease.
    pub epoch: u16,
    /// It is being taken away: the granted bits are held until that is acknowledged.
    pub breaking: bool,
}

/// The break of a lease, in whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// The key of the lease.
    pub key: LeaseKey,
    /// The bits that were held.
    pub from: LeaseBits,
    /// The bits that may be kept.
    pub to: LeaseBits,
    /// The epoch of the state `to`.
    pub epoch: u16,
    /// The lease is held until it is acknowledged
    /// ([`Session::acknowledge`](crate::Session::acknowledge)). Otherwise it is
    /// gone already.
    pub must_ack: bool,
    /// One of the lease's opens.
    pub open: OpenId,
}

/// Tells a client of its leases. Called by the thread that breaks the lease, with no lock of the
/// volume held; a sink should only note the break and send it.
pub trait LeaseSink: Send + Sync {
    /// Tells of the break of one lease.
    fn broken(&self, broken: &LeaseBreak);

    /// Returns whether it is an oplock: one of R, RW and RHW, which a break turns into R or
    /// nothing.
    fn is_oplock(&self) -> bool {
        false
    }
}

/// A break that the client must be told of, once no lock is held.
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
    /// The bits that it takes away.
    pub(crate) strips: LeaseBits,
    /// The bits that it must wait for.
    pub(crate) awaits: LeaseBits,
}

impl Impact {
    const fn new(strips: LeaseBits, awaits: LeaseBits) -> Self {
        Self { strips, awaits }
    }
    /// Opening and reading.
    pub(crate) const READ: Self = Self::new(LeaseBits::WRITE, LeaseBits::WRITE);
    /// Changing the content.
    pub(crate) const WRITE: Self = Self::new(LeaseBits::ALL, LeaseBits::WRITE);
    /// Changing the names; opening against a share mode.
    pub(crate) const NAME: Self = Self::new(LeaseBits::HANDLE, LeaseBits::HANDLE);
    /// A change that has already happened.
    pub(crate) const CHANGED: Self = Self::new(LeaseBits::ALL, LeaseBits::NONE);
}

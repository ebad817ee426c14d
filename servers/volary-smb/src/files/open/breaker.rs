//! [`Breaker`]: tells a client that an oplock or a lease of its opens is being broken.

use crate::client::{Link, Logon};
use crate::wire::{FileId, Out};
use parking_lot::Mutex;
use std::fmt;
use std::sync::{Arc, Weak};
use volary_session::{LeaseBits, LeaseBreak, LeaseKey, LeaseSink};

/// Keeps opens for disconnected clients.
pub(crate) trait Keeper: fmt::Debug + Send + Sync {
    /// Closes the kept opens with this oplock or lease.
    fn end_kept(&self, key: LeaseKey);
}

/// `OplockLevel`.
pub(crate) mod level {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const II: u8 = 1;
    pub(crate) const EXCLUSIVE: u8 = 8;
    pub(crate) const BATCH: u8 = 9;
    pub(crate) const LEASE: u8 = 0xff;
}

pub(crate) const READ: u8 = 1;
const HANDLE: u8 = 2;
const WRITE: u8 = 4;

/// Returns the lease bits of an oplock level.
pub(crate) fn bits_of_level(level: u8) -> LeaseBits {
    LeaseBits(match level {
        level::II => READ,
        level::EXCLUSIVE => READ | WRITE,
        level::BATCH => READ | HANDLE | WRITE,
        _ => 0,
    })
}

/// Returns the oplock level for these lease bits.
pub(crate) fn level_of_bits(bits: LeaseBits) -> u8 {
    match bits.0 {
        all if all == READ | HANDLE | WRITE => level::BATCH,
        both if both == READ | WRITE => level::EXCLUSIVE,
        some if some & READ != 0 => level::II,
        _ => level::NONE,
    }
}

/// Tells a client of breaks.
#[derive(Debug)]
pub(crate) struct Breaker {
    way: Mutex<Way>,
    told: Told,
    keeper: Weak<dyn Keeper>,
}

/// How the client is reached.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) link: Weak<Link>,
    pub(crate) logon: Weak<Logon>,
    pub(crate) sealed: bool,
    /// The id of an oplock's open there.
    pub(crate) id: FileId,
}

#[derive(Clone, Copy, Debug)]
enum Told {
    Oplock,
    /// `base` is for version 2: the epoch from which the session's epochs are counted.
    Lease {
        base: Option<u16>,
    },
}

impl Breaker {
    /// Returns the notifier for breaks of an oplock.
    pub(crate) fn of_oplock(way: Way, keeper: Weak<dyn Keeper>) -> Arc<Self> {
        Self::new(way, Told::Oplock, keeper)
    }

    /// Returns the notifier for breaks of a lease. `base` is for version 2: the epoch from which
    /// the session's epochs are counted.
    pub(crate) fn of_lease(way: Way, base: Option<u16>, keeper: Weak<dyn Keeper>) -> Arc<Self> {
        Self::new(way, Told::Lease { base }, keeper)
    }

    /// Returns the epoch from which the session's epochs are counted, for a lease of version 2.
    pub(crate) fn base(&self) -> Option<u16> {
        match self.told {
            Told::Lease { base } => base,
            Told::Oplock => None,
        }
    }

    /// Returns whether the client can be reached.
    pub(crate) fn reaches(&self) -> bool {
        let way = self.way.lock();
        let open = way.link.upgrade().is_some_and(|link| !link.is_closed());
        open && way.logon.upgrade().is_some_and(|logon| !logon.has_ended())
    }

    /// Returns the client's connection.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.way.lock().link.upgrade()
    }

    /// Reaches the client in the same way as `other`, from now on.
    pub(crate) fn go_by_way_of(&self, other: &Self) {
        let way = other.way.lock().clone();
        *self.way.lock() = way;
    }

    /// Reaches the client in this way, from now on.
    pub(crate) fn follow(&self, way: Way) {
        *self.way.lock() = way;
    }

    fn new(way: Way, told: Told, keeper: Weak<dyn Keeper>) -> Arc<Self> {
        Arc::new(Self {
            way: Mutex::new(way),
            told,
            keeper,
        })
    }
}

impl LeaseSink for Breaker {
    fn broken(&self, broken: &LeaseBreak) {
        // An open that is kept for a disconnected client ends with its lease.
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.end_kept(broken.key);
        }
        let way = self.way.lock().clone();
        let (Some(link), Some(logon)) = (way.link.upgrade(), way.logon.upgrade()) else {
            return;
        };
        if logon.has_ended() {
            return;
        }
        match self.told {
            Told::Oplock => {
                let body = oplock_body(way.id, level_of_bits(broken.to));
                link.send_break(&logon, way.sealed, body);
            }
            Told::Lease { base } => {
                // A lease belongs to the client, not to a connection, so the client's first
                // connection is told. This requires that the same user has logged on there, and
                // that no encryption with another session's keys is needed.
                let first = if way.sealed || logon.is_sealed() {
                    None
                } else {
                    link.first_of(&logon.user)
                };
                let link = first.unwrap_or(link);
                link.send_break(&logon, way.sealed, lease_break_body(broken, base));
            }
        }
    }

    fn is_oplock(&self) -> bool {
        matches!(self.told, Told::Oplock)
    }
}

pub(crate) fn oplock_body(id: FileId, level: u8) -> Vec<u8> {
    let mut out = Out::with_capacity(24);
    out.u16(24).u8(level).u8(0).u32(0);
    out.u64(id.persistent).u64(id.volatile);
    out.done()
}

fn lease_break_body(broken: &LeaseBreak, base: Option<u16>) -> Vec<u8> {
    let epoch = base.map_or(0, |base| base.wrapping_add(broken.epoch));
    let mut out = Out::with_capacity(44);
    out.u16(44).u16(epoch);
    out.u32(u32::from(broken.must_ack)).bytes(&broken.key.key);
    out.u32(broken.from.0.into()).u32(broken.to.0.into());
    out.zeros(12);
    out.done()
}

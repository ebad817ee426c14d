//! Oplocks and leases (MS-SMB2 3.3.1.4, 3.3.5.22): asked for at CREATE, broken by the session,
//! acknowledged here. An oplock is a lease whose key is its own open.

use super::common::Common;
use super::create::contexts::LeaseAsked;
use crate::answer::{Answer, Failure};
use crate::client::{Link, Logon};
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::le::id_at;
use crate::wire::{Cursor, Out, Status};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use volary_core::Kind;
use volary_session::{LeaseBits, LeaseBreak, LeaseKey, LeaseSink};

/// `OplockLevel`.
pub(crate) mod level {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const II: u8 = 1;
    pub(crate) const EXCLUSIVE: u8 = 8;
    pub(crate) const BATCH: u8 = 9;
    pub(crate) const LEASE: u8 = 0xff;
}

const READ: u8 = 1;
const HANDLE: u8 = 2;
const WRITE: u8 = 4;

/// The bits that an oplock level stands for.
pub(crate) fn bits_of_level(level: u8) -> LeaseBits {
    LeaseBits(match level {
        level::II => READ,
        level::EXCLUSIVE => READ | WRITE,
        level::BATCH => READ | HANDLE | WRITE,
        _ => 0,
    })
}

/// The oplock level that stands for the bits.
pub(crate) fn level_of_bits(bits: LeaseBits) -> u8 {
    match bits.0 {
        all if all == READ | HANDLE | WRITE => level::BATCH,
        both if both == READ | WRITE => level::EXCLUSIVE,
        some if some & READ != 0 => level::II,
        _ => level::NONE,
    }
}

/// The bits of a lease that a client asks for: what makes no sense is nothing.
pub(crate) fn bits_of_state(state: u32) -> LeaseBits {
    let bits = u8::try_from(state & 7).unwrap_or(0);
    LeaseBits(if bits & READ != 0 { bits } else { 0 })
}

/// The key under which the session keeps an oplock.
pub(crate) fn oplock_key(link: &Link, id: FileId) -> LeaseKey {
    let mut key = [0; 16];
    let (first, second) = key.split_at_mut(8);
    first.copy_from_slice(&id.persistent.to_le_bytes());
    second.copy_from_slice(&id.volatile.to_le_bytes());
    LeaseKey {
        client: link.shared.guid,
        key,
    }
}

/// The key under which the session keeps a lease of this caller's.
pub(crate) fn lease_key(call: &Call<'_>, key: [u8; 16]) -> LeaseKey {
    let shared = &call.link.shared;
    shared.lease_key(&call.logon.user, call.link.client_guid(), key)
}

/// Tells a client of breaks.
#[derive(Debug)]
pub(crate) struct Breaker {
    way: Mutex<Way>,
    told: Told,
    common: Weak<Common>,
}

/// How the client is reached.
#[derive(Clone, Debug)]
struct Way {
    link: Weak<Link>,
    logon: Weak<Logon>,
    sealed: bool,
    /// What an oplock's open is called there.
    id: FileId,
}

#[derive(Clone, Copy, Debug)]
enum Told {
    Oplock,
    /// For the second version, with the epoch from which the session's are counted.
    Lease {
        base: Option<u16>,
    },
}

impl Breaker {
    pub(crate) fn of_oplock(call: &Call<'_>, id: FileId) -> Arc<Self> {
        Self::new(call, id, Told::Oplock)
    }

    /// The lease is of the version, and its epochs begin, as its first open says.
    pub(crate) fn of_lease(call: &Call<'_>, asked: &LeaseAsked) -> Arc<Self> {
        let base = asked.v2.map(|v2| v2.epoch);
        Self::new(call, FileId::default(), Told::Lease { base })
    }

    /// The epoch from which the session's are counted, for a lease of the second version.
    pub(crate) fn base(&self) -> Option<u16> {
        match self.told {
            Told::Lease { base } => base,
            Told::Oplock => None,
        }
    }

    /// Whether the client can be told.
    pub(crate) fn reaches(&self) -> bool {
        let way = self.way.lock();
        let open = way.link.upgrade().is_some_and(|link| !link.is_closed());
        open && way.logon.upgrade().is_some_and(|logon| !logon.has_ended())
    }

    /// The client's connection.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.way.lock().link.upgrade()
    }

    /// From now on the client is reached as `other` does it.
    pub(crate) fn go_by_way_of(&self, other: &Self) {
        let way = other.way.lock().clone();
        *self.way.lock() = way;
    }

    /// From now on the client is reached by this call's connection, where the open is called `id`.
    pub(crate) fn follow(&self, call: &Call<'_>, id: FileId) {
        *self.way.lock() = Way::of(call, id);
    }

    fn new(call: &Call<'_>, id: FileId, told: Told) -> Arc<Self> {
        Arc::new(Self {
            way: Mutex::new(Way::of(call, id)),
            told,
            common: Arc::downgrade(&call.tree.common),
        })
    }
}

impl Way {
    fn of(call: &Call<'_>, id: FileId) -> Self {
        Self {
            link: Arc::downgrade(call.link),
            logon: Arc::downgrade(call.logon),
            sealed: call.tree.sealed,
            id,
        }
    }
}

impl LeaseSink for Breaker {
    fn broken(&self, broken: &LeaseBreak) {
        // What is kept for a client that is away is not kept any more.
        if let Some(common) = self.common.upgrade() {
            common.durables.end_of(broken.key);
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
                // A lease is the client's, not a connection's: its first one is told, if the same
                // user has logged on there and the keys of another are not needed for that.
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

fn oplock_body(id: FileId, level: u8) -> Vec<u8> {
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

/// OPLOCK_BREAK: an acknowledgement of either kind, told apart by its size.
pub(crate) fn oplock_break(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    match c.u16()? {
        24 => oplock_acknowledged(call, c),
        36 => lease_acknowledged(call, c),
        _ => Err(Status::INVALID_PARAMETER.into()),
    }
}

fn oplock_acknowledged(call: &mut Call<'_>, mut c: Cursor<'_>) -> Answer {
    let level = c.u8()?;
    c.skip(5)?;
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    let Some(key) = file.oplock else {
        return Err(Status::INVALID_OPLOCK_PROTOCOL.into());
    };
    if !matches!(
        level,
        level::NONE | level::II | level::EXCLUSIVE | level::BATCH
    ) {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let kept = call.tree.session.acknowledge(key, bits_of_level(level));
    let kept = kept.map_err(|e| acknowledgement_refused(&e, Status::INVALID_OPLOCK_PROTOCOL))?;
    Ok(oplock_body(file.id, level_of_bits(kept)))
}

fn lease_acknowledged(call: &mut Call<'_>, mut c: Cursor<'_>) -> Answer {
    c.skip(6)?;
    let key = id_at(c.take(16)?, 0).ok_or(Status::INVALID_PARAMETER)?;
    let state = c.u32()?;
    c.skip(8)?;
    let bits = LeaseBits(u8::try_from(state).map_err(|_| Status::INVALID_PARAMETER)?);
    let session = &call.tree.session;
    let lease = lease_key(call, key);
    let state = session.lease_state(lease);
    let breaking = state.map_err(|_| Status::OBJECT_NAME_NOT_FOUND)?.breaking;
    // More than was offered to keep, or something else than an answer to a break.
    let refused = if breaking {
        Status::REQUEST_NOT_ACCEPTED
    } else {
        Status::UNSUCCESSFUL
    };
    let kept = session.acknowledge(lease, bits);
    let kept = kept.map_err(|e| acknowledgement_refused(&e, refused))?;
    let mut out = Out::with_capacity(36);
    out.u16(36).u16(0).u32(0).bytes(&key);
    out.u32(kept.0.into()).u64(0);
    Ok(out.done())
}

fn acknowledgement_refused(error: &volary_core::Error, invalid: Status) -> Failure {
    match error.kind() {
        Kind::Invalid => invalid.into(),
        Kind::NotPermitted => Status::REQUEST_NOT_ACCEPTED.into(),
        Kind::NotFound => Status::OBJECT_NAME_NOT_FOUND.into(),
        kind => super::status::status(kind).into(),
    }
}

//! Oplocks and leases (MS-SMB2 3.3.1.4, 3.3.5.22): asked for at CREATE, broken by the session,
//! acknowledged here. An oplock is a lease whose key is its own open.

use super::open::{Breaker, READ, Way, bits_of_level, level, level_of_bits, oplock_body};
use crate::answer::{Answer, Failure};
use crate::client::Link;
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::le::id_at;
use crate::wire::{Cursor, Out, Status};
use std::sync::Arc;
use volary_core::Kind;
use volary_session::{LeaseBits, LeaseKey};

/// Returns the bits of a lease that a client asks for: what makes no sense is nothing.
pub(crate) fn bits_of_state(state: u32) -> LeaseBits {
    let bits = u8::try_from(state & 7).unwrap_or(0);
    LeaseBits(if bits & READ != 0 { bits } else { 0 })
}

/// Returns the key under which the session keeps an oplock.
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

/// Returns the key under which the session keeps a lease of this caller's.
pub(crate) fn lease_key(call: &Call<'_>, key: [u8; 16]) -> LeaseKey {
    let shared = &call.link.shared;
    shared.lease_key(&call.logon.user, call.link.client_guid(), key)
}

/// Returns how this call's client is told of breaks, to whom the open is called `id`.
pub(crate) fn way_of(call: &Call<'_>, id: FileId) -> Way {
    Way {
        link: Arc::downgrade(call.link),
        logon: Arc::downgrade(call.logon),
        sealed: call.tree.sealed,
        id,
    }
}

/// Returns who tells the client of breaks of an oplock.
pub(crate) fn oplock_breaker(call: &Call<'_>, id: FileId) -> Arc<Breaker> {
    Breaker::of_oplock(way_of(call, id), Arc::downgrade(&call.tree.common) as _)
}

/// Returns who tells the client of breaks of a lease. It is of the version, and its epochs begin, as its
/// first open says: of the second with a `base`, from which the session's are counted.
pub(crate) fn lease_breaker(call: &Call<'_>, base: Option<u16>) -> Arc<Breaker> {
    let way = way_of(call, FileId::default());
    Breaker::of_lease(way, base, Arc::downgrade(&call.tree.common) as _)
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

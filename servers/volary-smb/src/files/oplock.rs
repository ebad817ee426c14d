//! Oplocks and leases (MS-SMB2 3.3.1.4, 3.3.5.22). They are requested at CREATE, broken by the
//! session, and acknowledged here. An oplock is a lease whose key belongs to its open alone.

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

/// Returns the requested bits of a lease, or none if the combination is invalid.
pub(crate) fn bits_of_state(state: u32) -> LeaseBits {
    let bits = u8::try_from(state & 7).unwrap_or(0);
    LeaseBits(if bits & READ != 0 { bits } else { 0 })
}

/// Returns the key under which the session stores an oplock.
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

/// Returns the key under which the session stores a lease of this caller.
pub(crate) fn lease_key(call: &Call<'_>, key: [u8; 16]) -> LeaseKey {
    let shared = &call.link.shared;
    shared.lease_key(&call.logon.user, call.link.client_guid(), key)
}

/// Returns how to tell this call's client of breaks. `id` is the open's id there.
pub(crate) fn way_of(call: &Call<'_>, id: FileId) -> Way {
    Way {
        link: Arc::downgrade(call.link),
        logon: Arc::downgrade(call.logon),
        sealed: call.tree.sealed,
        id,
    }
}

/// Returns the notifier for breaks of an oplock.
pub(crate) fn oplock_breaker(call: &Call<'_>, id: FileId) -> Arc<Breaker> {
    Breaker::of_oplock(way_of(call, id), Arc::downgrade(&call.tree.common) as _)
}

/// Returns the notifier for breaks of a lease. The first open determines the lease's version, and
/// the start of its epochs. Version 2 has a `base`, from which the session's epochs are counted.
pub(crate) fn lease_breaker(call: &Call<'_>, base: Option<u16>) -> Arc<Breaker> {
    let way = way_of(call, FileId::default());
    Breaker::of_lease(way, base, Arc::downgrade(&call.tree.common) as _)
}

/// Answers OPLOCK_BREAK, an acknowledgement of either kind. Its size distinguishes the two.
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
    // The client wants to keep more than was offered, or no break is in progress.
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

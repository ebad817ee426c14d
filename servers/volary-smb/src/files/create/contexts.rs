//! Create contexts (MS-SMB2 2.2.13.2 and 2.2.14.2).
//!
//! `MxAc`, `QFid`, `RqLs`, `AlSi`, `ExtA`, `SecD` and those of durable opens are supported. `TWrp`
//! is refused, because there are no snapshots. Unknown contexts are ignored, as the specification
//! requires.

use crate::wire::FileId;
use crate::wire::fscc::le::{id_at, slice_at, u16_at, u32_at, u64_at};
use crate::wire::fscc::set::{self, Ea};
use crate::wire::{Out, Status, out::len32};
use volary_session::Lease;

/// The most contexts in a request.
const CONTEXTS_MAX: usize = 32;

/// What a request asks for in its contexts.
#[derive(Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) maximal_access: bool,
    pub(crate) disk_id: bool,
    pub(crate) lease: Option<LeaseAsked>,
    /// The allocation size, in bytes.
    pub(crate) allocation: Option<u64>,
    pub(crate) eas: Vec<Ea<'a>>,
    pub(crate) descriptor: Option<&'a [u8]>,
    /// Whether a durable open is requested (`DHnQ`).
    pub(crate) durable: bool,
    /// A durable open of version 2 (`DH2Q`).
    pub(crate) durable_v2: Option<DurableV2>,
    /// A durable open to reconnect (`DHnC`, `DH2C`).
    pub(crate) back: Option<Back>,
    /// The id of the client's program (`AppInstanceId`).
    pub(crate) app: Option<[u8; 16]>,
}

/// The lifetime of a durable open, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurableV2 {
    /// The lifetime in milliseconds; 0 leaves it to the server.
    pub(crate) timeout: u32,
    pub(crate) guid: [u8; 16],
}

/// A durable open to reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Back {
    pub(crate) id: FileId,
    /// The id of an open of version 2.
    pub(crate) guid: Option<[u8; 16]>,
}

/// The name of the context with an `AppInstanceId`.
const APP_INSTANCE: [u8; 16] = [
    0x45, 0xbc, 0xa6, 0x6a, 0xef, 0xa7, 0xf7, 0x4a, 0x90, 0x08, 0xfa, 0x46, 0x2e, 0x14, 0x4d, 0x74,
];

/// A requested lease (`RqLs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseAsked {
    pub(crate) key: [u8; 16],
    /// Bits: R 1, H 2, W 4.
    pub(crate) state: u32,
    /// Version 2 has an epoch, and perhaps the key of the directory's lease.
    pub(crate) v2: Option<LeaseV2>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseV2 {
    pub(crate) parent: Option<[u8; 16]>,
    pub(crate) epoch: u16,
}

const PARENT_KEY_SET: u32 = 4;
pub(crate) const BREAK_IN_PROGRESS: u32 = 2;

/// Parses the contexts.
///
/// # Errors
/// `INVALID_PARAMETER` if they are malformed or contradict each other; `OBJECT_NAME_NOT_FOUND` for
/// a snapshot; `EA_LIST_INCONSISTENT`.
pub(crate) fn parse(mut bytes: &[u8]) -> Result<Asked<'_>, Status> {
    let mut asked = Asked::default();
    if bytes.is_empty() {
        return Ok(asked);
    }
    for _ in 0..CONTEXTS_MAX {
        let (next, name, data) = one(bytes).ok_or(Status::INVALID_PARAMETER)?;
        note(&mut asked, name, data)?;
        if next == 0 {
            return asked.consistent();
        }
        bytes = bytes.get(next..).ok_or(Status::INVALID_PARAMETER)?;
    }
    Err(Status::INVALID_PARAMETER)
}

impl Asked<'_> {
    /// Checks that the contexts for durable opens do not contradict each other.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for both versions at once, or for a new open of version 2 together with
    /// one to reconnect.
    fn consistent(self) -> Result<Self, Status> {
        let again_v2 = self.back.is_some_and(|back| back.guid.is_some());
        let mixed = self.durable_v2.is_some() && (self.durable || self.back.is_some());
        if mixed || (again_v2 && self.durable) {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(self)
    }
}

/// Returns a context: where the next one begins, its name and its data.
fn one(bytes: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let next = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let bytes = match next {
        0 => bytes,
        next if next % 8 == 0 => bytes.get(..next)?,
        _ => return None,
    };
    let name = slice_at(bytes, u16_at(bytes, 4)?.into(), u16_at(bytes, 6)?.into())?;
    let data_len = usize::try_from(u32_at(bytes, 12)?).ok()?;
    let data = match data_len {
        0 => &[][..],
        len => slice_at(bytes, u16_at(bytes, 10)?.into(), len)?,
    };
    (name.len() >= 4).then_some((next, name, data))
}

fn note<'a>(asked: &mut Asked<'a>, name: &[u8], data: &'a [u8]) -> Result<(), Status> {
    match name {
        b"MxAc" if data.is_empty() || data.len() == 8 => asked.maximal_access = true,
        b"QFid" if data.is_empty() => asked.disk_id = true,
        b"AlSi" => asked.allocation = Some(u64_at(data, 0).ok_or(Status::INVALID_PARAMETER)?),
        b"RqLs" => asked.lease = Some(lease(data).ok_or(Status::INVALID_PARAMETER)?),
        b"ExtA" => asked.eas = set::full_ea(data).ok_or(Status::EA_LIST_INCONSISTENT)?,
        b"SecD" => asked.descriptor = Some(data),
        b"TWrp" => return Err(Status::OBJECT_NAME_NOT_FOUND),
        b"DHnQ" if data.len() == 16 => asked.durable = true,
        b"DH2Q" if data.len() == 32 => asked.durable_v2 = Some(durable_v2(data)?),
        b"DHnC" | b"DH2C" if asked.back.is_some() => return Err(Status::INVALID_PARAMETER),
        b"DHnC" if data.len() == 16 => asked.back = Some(back(data, None)?),
        b"DH2C" if data.len() == 36 => asked.back = Some(back(data, id_at(data, 16))?),
        b"DHnQ" | b"DH2Q" | b"DHnC" | b"DH2C" => return Err(Status::INVALID_PARAMETER),
        name if *name == APP_INSTANCE => {
            asked.app = Some(id_at(data, 4).ok_or(Status::INVALID_PARAMETER)?);
        }
        b"MxAc" | b"QFid" => return Err(Status::INVALID_PARAMETER),
        _ => {}
    }
    Ok(())
}

fn durable_v2(data: &[u8]) -> Result<DurableV2, Status> {
    Ok(DurableV2 {
        timeout: u32_at(data, 0).ok_or(Status::INVALID_PARAMETER)?,
        guid: id_at(data, 16).ok_or(Status::INVALID_PARAMETER)?,
    })
}

fn back(data: &[u8], guid: Option<[u8; 16]>) -> Result<Back, Status> {
    let part = |at| u64_at(data, at).ok_or(Status::INVALID_PARAMETER);
    let id = FileId {
        persistent: part(0)?,
        volatile: part(8)?,
    };
    Ok(Back { id, guid })
}

fn lease(data: &[u8]) -> Option<LeaseAsked> {
    let v2 = match data.len() {
        32 => None,
        52 => {
            let has_parent = u32_at(data, 20)? & PARENT_KEY_SET != 0;
            let parent = id_at(data, 32)?;
            Some(LeaseV2 {
                parent: has_parent.then_some(parent),
                epoch: u16_at(data, 48)?,
            })
        }
        _ => return None,
    };
    Some(LeaseAsked {
        key: id_at(data, 0)?,
        state: u32_at(data, 16)?,
        v2,
    })
}

/// Returns a granted lease (`RqLs` in the response). It is of version 2 if there is a `base`, from
/// which the session's epochs are counted.
pub(crate) fn lease_granted(asked: &LeaseAsked, lease: &Lease, base: Option<u16>) -> Vec<u8> {
    let mut flags = if lease.breaking { BREAK_IN_PROGRESS } else { 0 };
    let parent = asked.v2.and_then(|v2| v2.parent);
    if parent.is_some() && base.is_some() {
        flags |= PARENT_KEY_SET;
    }
    let mut out = Out::new();
    out.bytes(&asked.key).u32(lease.granted.0.into());
    out.u32(flags).u64(0);
    if let Some(base) = base {
        out.bytes(&parent.unwrap_or_default());
        out.u16(base.wrapping_add(lease.epoch)).u16(0);
    }
    out.done()
}

/// Encodes the contexts of a response.
pub(crate) fn emit(contexts: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    const DATA_AT: u16 = 24;
    let mut out = Out::new();
    for (at, (name, data)) in contexts.iter().enumerate() {
        let last = at.saturating_add(1) == contexts.len();
        let len = data.len().saturating_add(DATA_AT.into());
        let next = if last { 0 } else { len.next_multiple_of(8) };
        out.u32(len32(next)).u16(16).u16(4).u16(0).u16(DATA_AT);
        out.u32(len32(data.len())).bytes(*name).u32(0).bytes(data);
        if !last {
            out.align(8);
        }
    }
    out.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_session::LeaseBits;

    #[test]
    fn contexts_are_read_and_torn_ones_refused() {
        let lease = LeaseAsked {
            key: [7; 16],
            state: 3,
            v2: Some(LeaseV2 {
                parent: Some([9; 16]),
                epoch: 5,
            }),
        };
        let granted = Lease {
            granted: LeaseBits(3),
            epoch: 5,
            breaking: false,
        };
        let bytes = emit(&[
            (b"MxAc", Vec::new()),
            (b"RqLs", lease_granted(&lease, &granted, Some(0))),
            (b"AlSi", vec![0, 16, 0, 0, 0, 0, 0, 0]),
        ]);
        let asked = parse(&bytes).unwrap();
        assert!(asked.maximal_access && !asked.disk_id);
        assert_eq!(asked.lease, Some(lease));
        assert_eq!(asked.allocation, Some(4096));
        for len in 1..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn unknown_ones_are_ignored_and_snapshots_refused() {
        assert!(parse(&emit(&[(b"What", vec![1])])).is_ok());
        let gone = Err(Status::OBJECT_NAME_NOT_FOUND);
        let snapshot = emit(&[(b"TWrp", vec![0; 8])]);
        assert_eq!(parse(&snapshot).map(|_| ()), gone);
    }

    #[test]
    fn versions_of_durability_are_not_mixed() {
        let one = |name: &'static [u8; 4], len: usize| (name, vec![7; len]);
        let (ask, ask2) = (one(b"DHnQ", 16), one(b"DH2Q", 32));
        let (back, back2) = (one(b"DHnC", 16), one(b"DH2C", 36));
        for good in [&ask, &ask2, &back, &back2] {
            assert!(parse(&emit(std::slice::from_ref(good))).is_ok());
            let short = (good.0, good.1[1..].to_vec());
            assert!(parse(&emit(&[short])).is_err());
        }
        assert!(parse(&emit(&[ask.clone(), back.clone()])).is_ok());
        for (a, b) in [
            (&ask, &ask2),
            (&ask, &back2),
            (&ask2, &back),
            (&ask2, &back2),
            (&back, &back2),
        ] {
            assert!(parse(&emit(&[a.clone(), b.clone()])).is_err());
            assert!(parse(&emit(&[b.clone(), a.clone()])).is_err());
        }
        let asked = emit(&[back2]);
        let found = parse(&asked).unwrap().back.unwrap();
        assert_eq!(found.guid, Some([7; 16]));
    }
}

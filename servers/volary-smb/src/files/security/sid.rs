//! Security identifiers (MS-DTYP 2.4.2), and their mapping to users and groups.

use crate::wire::Out;
use crate::wire::fscc::le::{slice_at, u8_at, u32_at};

/// The most sub-authorities of a SID.
const SUBS_MAX: usize = 15;

/// A SID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sid {
    /// The authority, below 2^48.
    authority: u64,
    subs: Vec<u32>,
}

/// What a SID means on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    User(u32),
    Group(u32),
    Everyone,
    /// The node's owner (S-1-3-4).
    Owner,
    /// Not a principal, but twelve permission bits (S-1-5-88-3).
    Mode(u32),
}

const WORLD: u64 = 1;
const CREATOR: u64 = 3;
const NT: u64 = 5;
/// The authority of Unix users and groups in Samba and Wine.
const UNIX: u64 = 22;
/// The sub-authority under `NT` of the NFS server's users, groups and modes.
const NFS: u32 = 88;

impl Sid {
    pub(crate) fn user(uid: u32) -> Self {
        Self::new(UNIX, &[1, uid])
    }

    pub(crate) fn group(gid: u32) -> Self {
        Self::new(UNIX, &[2, gid])
    }

    pub(crate) fn everyone() -> Self {
        Self::new(WORLD, &[0])
    }

    fn new(authority: u64, subs: &[u32]) -> Self {
        Self {
            authority,
            subs: subs.to_vec(),
        }
    }

    /// Returns what it means, if a volume with owners, groups and modes can express that.
    pub(crate) fn principal(&self) -> Option<Principal> {
        Some(match (self.authority, self.subs.as_slice()) {
            (UNIX, [1, uid]) | (NT, [NFS, 1, uid]) => Principal::User(*uid),
            (UNIX, [2, gid]) | (NT, [NFS, 2, gid]) => Principal::Group(*gid),
            (NT, [NFS, 3, mode]) => Principal::Mode(*mode & 0o7777),
            (WORLD, [0]) | (NT, [11]) => Principal::Everyone,
            (CREATOR, [4]) => Principal::Owner,
            _ => return None,
        })
    }

    /// Returns a user or a group, without a meaningful number, for the SIDs that stand for the
    /// creator of a node (S-1-3-0, S-1-3-1).
    pub(crate) fn creator(&self) -> Option<Principal> {
        match (self.authority, self.subs.as_slice()) {
            (CREATOR, [0]) => Some(Principal::User(0)),
            (CREATOR, [1]) => Some(Principal::Group(0)),
            _ => None,
        }
    }

    /// Parses the SID at `at`.
    pub(crate) fn parse(bytes: &[u8], at: usize) -> Option<Self> {
        let head = slice_at(bytes, at, 8)?;
        let (revision, count) = (u8_at(head, 0)?, usize::from(u8_at(head, 1)?));
        if revision != 1 || count > SUBS_MAX {
            return None;
        }
        let authority = head
            .get(2..8)?
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let start = at.checked_add(8)?;
        let subs = slice_at(bytes, start, count.checked_mul(4)?)?;
        let subs = subs.chunks_exact(4).filter_map(|sub| u32_at(sub, 0));
        Some(Self {
            authority,
            subs: subs.collect(),
        })
    }

    pub(crate) fn put(&self, out: &mut Out) {
        out.u8(1).len8(self.subs.len());
        out.bytes(self.authority.to_be_bytes().get(2..).unwrap_or(&[]));
        for sub in &self.subs {
            out.u32(*sub);
        }
    }

    /// Returns its encoded length.
    pub(crate) fn len(&self) -> usize {
        self.subs.len().saturating_mul(4).saturating_add(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids_come_back() {
        for (sid, principal) in [
            (Sid::user(1000), Some(Principal::User(1000))),
            (Sid::group(7), Some(Principal::Group(7))),
            (Sid::everyone(), Some(Principal::Everyone)),
            (Sid::new(NT, &[NFS, 3, 0o644]), Some(Principal::Mode(0o644))),
            (Sid::new(NT, &[21, 1, 2, 3, 500]), None),
        ] {
            let mut out = Out::new();
            sid.put(&mut out);
            let bytes = out.done();
            assert_eq!(bytes.len(), sid.len());
            assert_eq!(Sid::parse(&bytes, 0), Some(sid.clone()));
            assert_eq!(sid.principal(), principal);
            for len in 0..bytes.len() {
                assert_eq!(Sid::parse(&bytes[..len], 0), None);
            }
        }
    }
}

//! File handles (RFC 1813's `nfs_fh3`): a node of an export, with a seal that only this server's
//! key can make.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | 1: this layout |
//! | 1..4 | zero |
//! | 4..8 | the export's id |
//! | 8..16 | the node's number |
//! | 16..20 | its generation |
//! | 20..36 | SipHash-2-4 with 128 bits, under the server's key, of bytes 0 to 20 and of the volume's epoch |
//!
//! For a volume with persistent node ids ([`Caps::STABLE_IDS`](volary_core::Caps::STABLE_IDS)), the
//! epoch is derived from the root's id. So its handles outlive a restart of the server with the
//! same key, and are stale once another directory is exported under its name. For other volumes it
//! is the server's instance: their handles are stale after a restart.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use volary_core::NodeId;

/// Length of a handle, in bytes.
pub(crate) const LEN: usize = 36;
/// The longest handle that a client may send (RFC 1813, `NFS3_FHSIZE`).
pub(crate) const LEN_MAX: usize = 64;
const LAYOUT: u8 = 1;
const SEALED: usize = 20;

/// The key that handles are sealed with.
#[derive(Clone)]
pub(crate) struct Key(SipHasher24);

/// Why bytes are not a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFh {
    /// They do not have the form of a handle.
    Shape,
    /// The seal is not ours, or no longer valid.
    Seal,
}

impl Key {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        Self(SipHasher24::new_with_key(key))
    }

    /// Returns the handle of a node.
    pub(crate) fn seal(&self, export: u32, epoch: u64, node: NodeId) -> [u8; LEN] {
        let mut fh = [0; LEN];
        let parts: [(usize, &[u8]); 4] = [
            (0, &[LAYOUT]),
            (4, &export.to_be_bytes()),
            (8, &node.ino.get().to_be_bytes()),
            (16, &node.generation.to_be_bytes()),
        ];
        for (at, bytes) in parts {
            if let Some(place) = fh.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        let (body, seal) = fh.split_at_mut(SEALED);
        seal.copy_from_slice(&self.mac(body, epoch).to_be_bytes());
        fh
    }

    /// Returns the export and node of a handle, if the seal is ours. `epoch` returns the epoch of
    /// an export, if that exists.
    pub(crate) fn open(
        &self,
        fh: &[u8],
        epoch: impl FnOnce(u32) -> Option<u64>,
    ) -> Result<(u32, NodeId), BadFh> {
        let fh: &[u8; LEN] = fh.try_into().map_err(|_| BadFh::Shape)?;
        let (body, seal) = fh.split_at(SEALED);
        let mut rest = volary_rpc::Input::new(body);
        let mut read = || {
            let layout = rest.u32().ok()?;
            let (export, ino) = (rest.u32().ok()?, rest.u64().ok()?);
            let node = NodeId::new(ino, rest.u32().ok()?)?;
            (layout == u32::from(LAYOUT) << 24).then_some((export, node))
        };
        let (export, node) = read().ok_or(BadFh::Shape)?;
        let epoch = epoch(export).ok_or(BadFh::Seal)?;
        let seal = <[u8; 16]>::try_from(seal).map_err(|_| BadFh::Shape)?;
        // Compares in constant time: one number with another.
        if self.mac(body, epoch) ^ u128::from_be_bytes(seal) == 0 {
            Ok((export, node))
        } else {
            Err(BadFh::Seal)
        }
    }

    fn mac(&self, body: &[u8], epoch: u64) -> u128 {
        let mut hasher = self.0;
        hasher.write(body);
        hasher.write(&epoch.to_be_bytes());
        hasher.finish128().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 5;

    fn open(key: &Key, fh: &[u8]) -> Result<(u32, NodeId), BadFh> {
        key.open(fh, |export| (export == 3).then_some(EPOCH))
    }

    #[test]
    fn a_handle_leads_back_to_its_node() {
        let key = Key::new(&[7; 16]);
        for (ino, generation) in [(1, 0), (u64::MAX, u32::MAX), (1 << 33, 9)] {
            let node = NodeId::new(ino, generation).unwrap();
            let fh = key.seal(3, EPOCH, node);
            assert_eq!(open(&key, &fh), Ok((3, node)));
            assert_eq!(open(&Key::new(&[8; 16]), &fh), Err(BadFh::Seal));
            let later = key.open(&fh, |_| Some(EPOCH + 1));
            assert_eq!(later, Err(BadFh::Seal));
            assert_eq!(key.open(&fh, |_| None), Err(BadFh::Seal));
        }
    }

    #[test]
    fn no_handle_is_forged_by_turning_a_bit() {
        let key = Key::new(&[7; 16]);
        let good = key.seal(3, EPOCH, NodeId::new(4, 1).unwrap());
        for bit in 0..LEN * 8 {
            let mut fh = good;
            fh[bit / 8] ^= 1 << (bit % 8);
            let opened = key.open(&fh, |_| Some(EPOCH));
            assert!(opened.is_err(), "bit {bit}");
        }
        for len in 0..LEN {
            assert_eq!(open(&key, &good[..len]), Err(BadFh::Shape));
        }
        assert_eq!(open(&key, &[&good[..], &[0]].concat()), Err(BadFh::Shape));
    }
}

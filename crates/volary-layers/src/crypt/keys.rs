//! The volume's header, and the keys that are derived from it.
//!
//! | byte | header |
//! |---|---|
//! | 0 | `VolaryCr` |
//! | 8 | version, 1 (numbers are little-endian, 4 bytes) |
//! | 12 | Argon2id: memory in KiB, passes, lanes |
//! | 24 | salt, 16 bytes |
//! | 40 | nonce, 24 bytes |
//! | 64 | master key, 32 bytes, and tag, 16: XChaCha20-Poly1305 under the key that Argon2id derives from the passphrase, bound to bytes 0 to 40 |

use crate::Outside;
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Error, Kind, Result};
use zeroize::Zeroizing;

const MAGIC: [u8; 8] = *b"VolaryCr";
const VERSION: u32 = 1;
/// Length of the header.
pub(super) const HEADER_LEN: usize = 112;
const BOUND_LEN: usize = 40;

/// The cost of trying a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptCost {
    /// Memory in KiB, at most 256 MiB; memory times passes is at most 1 GiB.
    pub memory: u32,
    /// Passes over it, 16 at most.
    pub passes: u32,
    /// Lanes, 16 at most.
    pub lanes: u32,
}

impl Default for CryptCost {
    /// Returns 64 MiB, three passes, one lane (RFC 9106, 4).
    fn default() -> Self {
        Self {
            memory: 64 << 10,
            passes: 3,
            lanes: 1,
        }
    }
}

/// The highest cost that is accepted from a header.
const COST_MAX: CryptCost = CryptCost {
    memory: 256 << 10,
    passes: 16,
    lanes: 16,
};
/// The highest product of memory, in KiB, and passes: five times the default, some seconds.
const WORK_MAX: u32 = 1 << 20;

type Key = Zeroizing<[u8; 32]>;

/// The keys of an encrypted volume.
pub(super) struct Keys {
    content: Key,
    /// The key for names, for AES-256-SIV: twice the length.
    pub(super) names: Zeroizing<[u8; 64]>,
    pub(super) targets: Zeroizing<[u8; 64]>,
    nonces: Nonces,
}

/// Nonces that are never used twice: 16 random bytes for each attachment, and a counter.
struct Nonces {
    head: [u8; 16],
    count: AtomicU64,
}

impl Keys {
    /// Makes new random keys, and a header that holds them.
    ///
    /// # Errors
    /// Those of `outside`; `Unsupported` for a cost out of range.
    pub(super) fn make(
        outside: &dyn Outside,
        passphrase: &[u8],
        cost: CryptCost,
    ) -> Result<(Self, [u8; HEADER_LEN])> {
        let mut header = [0; HEADER_LEN];
        let mut master = Zeroizing::new([0; 32]);
        outside.random(&mut *master)?;
        let mut chance = [0; 40];
        outside.random(&mut chance)?;
        let (salt, nonce) = chance.split_at(16);
        let numbers = [VERSION, cost.memory, cost.passes, cost.lanes].map(u32::to_le_bytes);
        let bound = [&MAGIC[..], &numbers.concat(), salt].concat();
        let cipher = unlock(passphrase, salt, cost)?;
        let payload = Payload {
            msg: &*master,
            aad: &bound,
        };
        let nonce: [u8; 24] = nonce.try_into().map_err(|_| broken())?;
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload);
        let whole = [bound, nonce.to_vec(), sealed.map_err(|_| broken())?].concat();
        header.copy_from_slice(&whole);
        Ok((Self::from_master(outside, &master)?, header))
    }

    /// Opens a header.
    ///
    /// # Errors
    /// `Corrupt` for a malformed header. `Unsupported` for another version, and for a cost out of
    /// range. `NotPermitted` for a wrong passphrase, and for a header that was changed: the two
    /// cannot be told apart.
    pub(super) fn open(outside: &dyn Outside, passphrase: &[u8], header: &[u8]) -> Result<Self> {
        let bad = |what, found: String| Error::corrupt(what, 0, found, "a header of layer crypt");
        let (bound, rest) = header
            .split_at_checked(BOUND_LEN)
            .filter(|_| header.len() == HEADER_LEN)
            .ok_or_else(|| bad("crypt header", format!("{} bytes", header.len())))?;
        if !bound.starts_with(&MAGIC) {
            return Err(bad("crypt header", "another magic".into()));
        }
        let number = |at: usize| {
            let bytes = bound.get(at..at + 4).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        if number(8) != VERSION {
            let words = format!("layer crypt: version {} is not known", number(8));
            return Err(Error::note(Kind::Unsupported, words));
        }
        let cost = CryptCost {
            memory: number(12),
            passes: number(16),
            lanes: number(20),
        };
        let (nonce, sealed) = rest.split_at_checked(24).unwrap_or_default();
        let nonce: [u8; 24] = nonce.try_into().map_err(|_| broken())?;
        let cipher = unlock(passphrase, bound.get(24..).unwrap_or_default(), cost)?;
        let payload = Payload {
            msg: sealed,
            aad: bound,
        };
        let master = cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| {
            let words = "layer crypt: wrong passphrase, or the header was changed";
            Error::note(Kind::NotPermitted, words)
        })?;
        let master = Zeroizing::new(master);
        let master: Key = Zeroizing::new(master.as_slice().try_into().map_err(|_| broken())?);
        Self::from_master(outside, &master)
    }

    fn from_master(outside: &dyn Outside, master: &[u8; 32]) -> Result<Self> {
        let mut head = [0; 16];
        outside.random(&mut head)?;
        let hkdf = Hkdf::<Sha256>::new(None, master);
        let mut content = Zeroizing::new([0; 32]);
        let mut names = Zeroizing::new([0; 64]);
        let mut targets = Zeroizing::new([0; 64]);
        let all: [(&[u8], &mut [u8]); 3] = [
            (b"volary crypt content", &mut *content),
            (b"volary crypt names", &mut *names),
            (b"volary crypt targets", &mut *targets),
        ];
        for (what, key) in all {
            hkdf.expand(what, key).map_err(|_| broken())?;
        }
        Ok(Self {
            content,
            names,
            targets,
            nonces: Nonces {
                head,
                count: AtomicU64::new(0),
            },
        })
    }

    /// Returns the cipher of a file, from the id in its header.
    pub(super) fn of_file(&self, id: &[u8; 24]) -> Result<XChaCha20Poly1305> {
        let hkdf = Hkdf::<Sha256>::new(Some(id), &*self.content);
        let mut key = Zeroizing::new([0; 32]);
        hkdf.expand(b"volary crypt file", &mut *key)
            .map_err(|_| broken())?;
        XChaCha20Poly1305::new_from_slice(&*key).map_err(|_| broken())
    }

    /// Returns a nonce that was not used before.
    pub(super) fn nonce(&self) -> [u8; 24] {
        let count = self.nonces.count.fetch_add(1, Ordering::Relaxed);
        let mut nonce = [0; 24];
        let (head, tail) = nonce.split_at_mut(16);
        head.copy_from_slice(&self.nonces.head);
        tail.copy_from_slice(&count.to_le_bytes());
        nonce
    }
}

/// Returns the cipher whose key is derived from a passphrase.
fn unlock(passphrase: &[u8], salt: &[u8], cost: CryptCost) -> Result<XChaCha20Poly1305> {
    let too_much = cost.memory > COST_MAX.memory
        || cost.passes > COST_MAX.passes
        || cost.lanes > COST_MAX.lanes
        || cost.memory.saturating_mul(cost.passes) > WORK_MAX;
    let odd = || {
        let words = format!("layer crypt: a passphrase cannot cost {cost:?}");
        Error::note(Kind::Unsupported, words)
    };
    let params = Params::new(cost.memory, cost.passes, cost.lanes, Some(32));
    let params = params.ok().filter(|_| !too_much).ok_or_else(odd)?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut key = Zeroizing::new([0; 32]);
    argon
        .hash_password_into(passphrase, salt, &mut *key)
        .map_err(|_| odd())?;
    XChaCha20Poly1305::new_from_slice(&*key).map_err(|_| broken())
}

/// Returns the error for a cipher that refuses its input. It should not happen, since lengths are
/// checked before.
pub(super) fn broken() -> Error {
    Error::note(Kind::Io, "layer crypt: a cipher refused")
}

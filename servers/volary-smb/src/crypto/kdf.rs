//! Key derivation: SP 800-108 in counter mode with HMAC-SHA256, and a 32-bit counter and length.

use super::Preauth;
use crate::wire::Dialect;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The purpose of a key: label and context.
pub(super) struct Purpose {
    label: &'static [u8],
    context: Vec<u8>,
}

/// The purposes of a session's keys.
pub(super) struct Labels {
    pub(super) signing: Purpose,
    pub(super) server_out: Purpose,
    pub(super) server_in: Purpose,
}

/// Returns the purposes. The labels include their NUL.
pub(super) fn labels(dialect: Dialect, preauth: &Preauth) -> Labels {
    let purpose = |label, context: &[u8]| Purpose {
        label,
        context: context.to_vec(),
    };
    if dialect >= Dialect::Smb311 {
        let hash = preauth.bytes();
        return Labels {
            signing: purpose(b"SMBSigningKey\0", hash),
            server_out: purpose(b"SMBS2CCipherKey\0", hash),
            server_in: purpose(b"SMBC2SCipherKey\0", hash),
        };
    }
    Labels {
        signing: purpose(b"SMB2AESCMAC\0", b"SmbSign\0"),
        server_out: purpose(b"SMB2AESCCM\0", b"ServerOut\0"),
        server_in: purpose(b"SMB2AESCCM\0", b"ServerIn \0"),
    }
}

/// Fills `out`, which has at most 32 bytes, in a single round.
pub(super) fn derive(key: &[u8], purpose: &Purpose, out: &mut [u8]) {
    debug_assert!(out.len() <= 32);
    let bits = u32::try_from(out.len() * 8).expect("a short key");
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length will do");
    mac.update(&1u32.to_be_bytes());
    mac.update(purpose.label);
    mac.update(&[0]);
    mac.update(&purpose.context);
    mac.update(&bits.to_be_bytes());
    let round = mac.finalize().into_bytes();
    for (to, from) in out.iter_mut().zip(round) {
        *to = from;
    }
}

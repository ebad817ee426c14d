//! Signing and encryption of messages, and hashes of passwords. Uses only `wire`.

mod kdf;
mod nt_hash;
mod preauth;
mod sealing;
mod signing;

use crate::wire::Dialect;
pub use nt_hash::NtHash;
pub(crate) use preauth::Preauth;
pub(crate) use sealing::{Cipher, MAGIC as SEALED_MAGIC, Sealer, TRANSFORM_LEN, TransformHeader};
pub(crate) use signing::{Algorithm, Role, Signer, Signing};

/// A session's keys.
pub(crate) struct Keys {
    pub(crate) signer: Signer,
    /// For messages that the server sends, and for those it receives. `None` without encryption.
    pub(crate) seal: Option<(Sealer, Sealer)>,
}

impl Keys {
    /// Derives the keys (MS-SMB2 3.3.5.5.3). `preauth` is the session's hash, which 3.1.1 includes.
    pub(crate) fn derive(
        session_key: &[u8; 16],
        dialect: Dialect,
        algorithm: Algorithm,
        cipher: Option<Cipher>,
        preauth: &Preauth,
    ) -> Self {
        if dialect < Dialect::Smb300 {
            return Self {
                signer: Signer::new(algorithm, session_key),
                seal: None,
            };
        }
        let labels = kdf::labels(dialect, preauth);
        let mut signing_key = [0; 16];
        kdf::derive(session_key, &labels.signing, &mut signing_key);
        let seal = cipher.map(|cipher| {
            let keyed = |label| {
                let mut key = [0; 32];
                let key = key.get_mut(..cipher.key_len()).unwrap_or_default();
                kdf::derive(session_key, label, key);
                Sealer::new(cipher, key)
            };
            (keyed(&labels.server_out), keyed(&labels.server_in))
        });
        Self {
            signer: Signer::new(algorithm, &signing_key),
            seal,
        }
    }
}

/// Returns random bytes from the system.
///
/// # Panics
/// If the system has none, because nothing here is secure without them.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    bytes
}

#[cfg(test)]
mod tests;

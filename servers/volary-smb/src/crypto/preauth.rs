//! Pre-authentication integrity (MS-SMB2 3.1.4.4.1): a hash of all messages before there are keys.

use sha2::{Digest, Sha512};

/// The hash so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preauth([u8; 64]);

impl Preauth {
    pub(crate) const START: Self = Self([0; 64]);

    #[cfg(test)]
    pub(crate) const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Adds a message to the hash, from its header on.
    pub(crate) fn mix(&mut self, parts: &[&[u8]]) {
        let mut hash = Sha512::new_with_prefix(self.0);
        for part in parts {
            hash.update(part);
        }
        self.0 = hash.finalize().into();
    }

    pub(crate) fn bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

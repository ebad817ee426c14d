//! [`NtHash`]: what a password is kept as.

use crate::wire::utf16;
use md4::{Digest, Md4};
use std::fmt;
use zeroize::Zeroize;

/// The MD4 hash of a password: as good as the password to whoever has it. Not
/// shown by `Debug`, and wiped when dropped.
#[derive(Clone)]
pub struct NtHash([u8; 16]);

impl NtHash {
    /// Returns the hash of a password (MS-NLMP 3.3.1, NTOWFv1).
    pub fn of(password: &str) -> Self {
        Self(Md4::digest(utf16(password)).into())
    }

    /// Returns a hash as it is kept in a file.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for NtHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NtHash")
    }
}

impl Drop for NtHash {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

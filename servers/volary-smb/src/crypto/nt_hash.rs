//! [`NtHash`]: the stored form of a password.

use crate::wire::utf16;
use md4::{Digest, Md4};
use std::fmt;
use zeroize::Zeroize;

/// The MD4 hash of a password. It is as secret as the password, because it suffices to log on. It
/// is not shown by `Debug`, and wiped when it is dropped.
#[derive(Clone)]
pub struct NtHash([u8; 16]);

impl NtHash {
    /// Returns the hash of a password (MS-NLMP 3.3.1, NTOWFv1).
    pub fn of(password: &str) -> Self {
        Self(Md4::digest(utf16(password)).into())
    }

    /// Returns a hash from its stored bytes.
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

//! NTLM version 2 (MS-NLMP).

use md4::{Digest, Md4};

/// `NTOWFv1` (3.3.1): what a password is kept as.
pub(crate) fn nt_hash(password: &str) -> [u8; 16] {
    let mut hash = Md4::new();
    for unit in password.encode_utf16() {
        hash.update(unit.to_le_bytes());
    }
    hash.finalize().into()
}

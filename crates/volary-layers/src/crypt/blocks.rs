//! Blocks of files: their layout, and sealing and opening them.
//!
//! | byte | file below |
//! |---|---|
//! | 0 | `VolCrypt`, and the file's id: 24 bytes from which its key is derived |
//! | 32 + 4136 n | block n: nonce, 24 bytes; up to 4096 bytes encrypted; tag, 16 |
//!
//! An empty file has no header. A block is bound to its number, and to whether it is the file's
//! last. A block that was sealed as the last may later have others after it. All zeros are a hole.

use super::keys::{Keys, broken};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use volary_core::{Error, Result, is_zero};

/// Bytes of a block, in plain and as stored below.
pub(super) const BLOCK: u64 = 4096;
pub(super) const STORED: u64 = BLOCK + OVER;
const OVER: u64 = 40;
/// Length of a file's header.
pub(super) const HEAD: u64 = 32;
const MAGIC: [u8; 8] = *b"VolCrypt";

/// Returns the length below of a file that has `size` bytes above.
pub(super) fn stored_size(size: u64) -> u64 {
    if size == 0 {
        return 0;
    }
    let (whole, part) = (size / BLOCK, size % BLOCK);
    let part = if part == 0 { 0 } else { part + OVER };
    let blocks = whole.saturating_mul(STORED).saturating_add(part);
    blocks.saturating_add(HEAD)
}

/// Returns the size above of a file whose length below is `stored`.
pub(super) fn size_of(stored: u64) -> u64 {
    let Some(blocks) = stored.checked_sub(HEAD) else {
        return 0;
    };
    let (whole, part) = (blocks / STORED, blocks % STORED);
    whole * BLOCK + part.saturating_sub(OVER)
}

/// Returns the offset of block `n` in the file below.
pub(super) fn place(n: u64) -> u64 {
    HEAD.saturating_add(n.saturating_mul(STORED))
}

/// Returns the header of a new file: the magic number and the file's id.
pub(super) fn header(id: &[u8; 24]) -> Vec<u8> {
    [&MAGIC[..], id].concat()
}

/// Returns the id in a header.
///
/// # Errors
/// `Corrupt`.
pub(super) fn id_of(header: &[u8]) -> Result<[u8; 24]> {
    let id = header.strip_prefix(&MAGIC);
    let id = id.and_then(|id| id.try_into().ok());
    let bad = || Error::corrupt("crypt file header", 0, "something else", "VolCrypt");
    id.ok_or_else(bad)
}

fn bound(n: u64, last: bool) -> [u8; 9] {
    let mut bound = [0; 9];
    let (number, flag) = bound.split_at_mut(8);
    number.copy_from_slice(&n.to_le_bytes());
    flag.fill(u8::from(last));
    bound
}

/// Seals block `n` of a file.
pub(super) fn seal(
    keys: &Keys,
    cipher: &XChaCha20Poly1305,
    n: u64,
    last: bool,
    plain: &[u8],
) -> Result<Vec<u8>> {
    let nonce = keys.nonce();
    let payload = Payload {
        msg: plain,
        aad: &bound(n, last),
    };
    let sealed = cipher.encrypt(&XNonce::from(nonce), payload);
    Ok([&nonce[..], &sealed.map_err(|_| broken())?].concat())
}

/// An opened block.
pub(super) struct Opened {
    pub(super) plain: Vec<u8>,
    /// Whether it was sealed as the last block, or is a hole.
    pub(super) can_be_last: bool,
}

/// Opens block `n`, which is stored as `sealed`.
///
/// # Errors
/// `Corrupt` unless it was sealed as this block of this file.
pub(super) fn open(
    cipher: &XChaCha20Poly1305,
    n: u64,
    last: bool,
    sealed: &[u8],
) -> Result<Opened> {
    if is_zero(sealed) {
        let len = sealed.len().saturating_sub(OVER as usize);
        return Ok(Opened {
            plain: vec![0; len],
            can_be_last: true,
        });
    }
    let bad = |found: &str| {
        let expected = "a block that was sealed here";
        Error::corrupt("crypt block", place(n), found, expected)
    };
    let (nonce, rest) = sealed
        .split_first_chunk::<24>()
        .ok_or_else(|| bad("too short"))?;
    let try_as = |last: bool| {
        let payload = Payload {
            msg: rest,
            aad: &bound(n, last),
        };
        cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    };
    let inner = if last { None } else { try_as(false) };
    if let Some(plain) = inner {
        return Ok(Opened {
            plain,
            can_be_last: false,
        });
    }
    let plain = try_as(true).ok_or_else(|| bad("changed, moved or cut"))?;
    Ok(Opened {
        plain,
        can_be_last: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_above_and_below_go_together() {
        for size in (0..20_000).chain([u64::from(u32::MAX), 1 << 40]) {
            let stored = stored_size(size);
            assert_eq!(size_of(stored), size);
        }
        for stored in 0..20_000 {
            assert!(stored_size(size_of(stored)) <= stored);
        }
    }
}

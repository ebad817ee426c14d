//! A digest of content that skips zeros, as SHA-256 over holes is slow, above all in emulated
//! guests.

use sha2::{Digest, Sha256};

/// The size of a part, in bytes. A part that is all zeros is skipped.
const PART: usize = 64 << 10;

/// Returns the digest of `content`. It is SHA-256 over each 64 KiB part that is not all zeros,
/// preceded by its number (8 bytes, little-endian). The total length comes last, in the same form.
/// `oracle/common.py` does the same.
pub fn digest(content: &[u8]) -> [u8; 32] {
    let mut parts = Parts::default();
    for part in content.chunks(PART) {
        parts.take(part);
    }
    parts.end()
}

/// Returns the [`digest`] of the content that `read` reads. `read` takes an offset and a buffer,
/// and returns 0 at the end.
///
/// # Errors
/// The errors of `read`.
pub fn digest_of<E>(
    mut read: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
) -> Result<[u8; 32], E> {
    let (mut parts, mut buf) = (Parts::default(), vec![0; PART]);
    loop {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read(parts.len + filled as u64, rest)? {
                0 => break,
                n => filled += n,
            }
        }
        parts.take(&buf[..filled]);
        if filled < PART {
            return Ok(parts.end());
        }
    }
}

#[derive(Default)]
struct Parts {
    hash: Sha256,
    count: u64,
    len: u64,
}

impl Parts {
    fn take(&mut self, part: &[u8]) {
        if !volary_core::is_zero(part) {
            self.hash.update(self.count.to_le_bytes());
            self.hash.update(part);
        }
        self.count += 1;
        self.len += part.len() as u64;
    }

    fn end(mut self) -> [u8; 32] {
        self.hash.update(self.len.to_le_bytes());
        self.hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_data_and_lengths_count() {
        let mut all = std::collections::BTreeSet::new();
        for (len, at) in [
            (0, 0),
            (1, 0),
            (PART, 0),
            (PART, 5),
            (3 * PART + 1, PART),
            (3 * PART + 1, 2 * PART),
        ] {
            let mut content = vec![0; len];
            assert!(
                len == 0 || all.insert(digest(&content)) || at > 0,
                "zeros of {len}"
            );
            if let Some(byte) = content.get_mut(at) {
                *byte = 1;
            }
            assert!(all.insert(digest(&content)), "{len} bytes, one at {at}");
        }
    }

    #[test]
    fn reads_of_any_length_make_the_same() {
        let content = crate::rng::pattern(1, 2 * PART + 77);
        for most in [1000, PART - 1, PART, 3 * PART] {
            let read = |at: u64, buf: &mut [u8]| {
                let rest = &content[at as usize..];
                let n = rest.len().min(buf.len()).min(most);
                buf[..n].copy_from_slice(&rest[..n]);
                Ok::<_, ()>(n)
            };
            assert_eq!(digest_of(read), Ok(digest(&content)), "{most} at most");
        }
    }
}

//! The hash by which names are found.

/// Returns a hash of a folded name or of a basis.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = (bytes.len() as u64).wrapping_mul(K);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        h = (h ^ u64::from_le_bytes(*word)).wrapping_mul(K);
        h ^= h >> 29;
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    h = (h ^ u64::from_le_bytes(last)).wrapping_mul(K);
    h ^ h >> 32
}

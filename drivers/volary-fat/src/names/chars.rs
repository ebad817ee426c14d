//! Case, as VFAT compares names ([`fold_char`](volary_core::fold_char)), and sets of bytes.

pub(crate) use volary_core::fold_char as upper;

/// A set of bytes: whether each is in it.
pub(crate) type ByteSet = [bool; 256];

/// Returns the set of these bytes.
#[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
pub(crate) const fn byte_set(bytes: &[u8]) -> ByteSet {
    let mut set = [false; 256];
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        set[*byte as usize] = true;
        rest = after;
    }
    set
}

/// Returns whether a byte is in a set.
pub(crate) fn in_set(set: &ByteSet, byte: u8) -> bool {
    set.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Returns the lower-case form, where it is one character; else the character itself.
pub(crate) fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(l), None) => l,
        _ => c,
    }
}

//! Names: UTF-16 on the volume, WTF-8 in memory.

/// Reads units of 16 bits. Ignores an odd byte at the end.
pub(crate) fn units(bytes: &[u8]) -> Vec<u16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect()
}

/// Returns a name in WTF-8, where different sequences of units always give different bytes.
pub(crate) fn wtf8(units: &[u16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(units.len());
    volary_ondisk::wtf8::from_utf16(units, &mut out);
    out
}

/// Returns the units of a name. `None` if it is not WTF-8, or too long for a name.
pub(crate) fn utf16(name: &[u8]) -> Option<Vec<u16>> {
    let mut units = vec![0; 255];
    let len = volary_ondisk::wtf8::to_utf16(name, &mut units)?.ok()?;
    units.truncate(len);
    Some(units)
}

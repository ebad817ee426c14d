//! Names: UTF-16 on the volume, WTF-8 here.

/// Reads units of 16 bits. A byte that is left over is passed over.
pub(crate) fn units(bytes: &[u8]) -> Vec<u16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect()
}

/// Returns the name in WTF-8: every sequence of units has its own bytes.
pub(crate) fn wtf8(units: &[u16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(units.len());
    volary_ondisk::wtf8::from_utf16(units, &mut out);
    out
}

/// Returns the units of a name; none for bytes that are not WTF-8, or that are more than a name has.
pub(crate) fn utf16(name: &[u8]) -> Option<Vec<u16>> {
    let mut units = vec![0; 255];
    let len = volary_ondisk::wtf8::to_utf16(name, &mut units)?.ok()?;
    units.truncate(len);
    Some(units)
}

//! Converts names and other text fields for display.

/// Returns a plain ISO 9660 name without `;1` and a dot at the end, in lower case. With `as_it_is`,
/// returns it unchanged.
pub(crate) fn plain(name: &[u8], as_it_is: bool) -> Vec<u8> {
    if as_it_is {
        return name.to_vec();
    }
    let name = name.strip_suffix(b";1").unwrap_or(name);
    let name = name.strip_suffix(b".").unwrap_or(name);
    name.to_ascii_lowercase()
}

/// Returns a name of Joliet (big-endian UCS-2) in WTF-8, without `;1` and dots at the end.
pub(crate) fn joliet(name: &[u8]) -> Vec<u8> {
    let (pairs, _) = name.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    let mut out = Vec::with_capacity(name.len());
    volary_ondisk::wtf8::from_utf16(&units, &mut out);
    let mut name = out.strip_suffix(b";1").unwrap_or(&out);
    while let Some(shorter) = name.strip_suffix(b".").filter(|s| !s.is_empty()) {
        name = shorter;
    }
    name.to_vec()
}

/// Returns a text field without the blanks at its end, escaped for printing.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&b| b != b' ' && b != 0);
    let bytes = bytes
        .get(..end.map_or(0, |end| end + 1))
        .unwrap_or_default();
    volary_core::escape(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_dots_are_taken_off() {
        assert_eq!(plain(b"README.TXT;1", false), b"readme.txt");
        assert_eq!(plain(b"README.;1", false), b"readme");
        assert_eq!(plain(b"README.;1", true), b"README.;1");
        assert_eq!(plain(b"OLD.TXT;2", false), b"old.txt;2");
        let wide = |s: &str| -> Vec<u8> { s.encode_utf16().flat_map(u16::to_be_bytes).collect() };
        assert_eq!(joliet(&wide("Grün.txt;1")), "Grün.txt".as_bytes());
        assert_eq!(joliet(&wide("dots...")), b"dots");
        assert_eq!(joliet(&[0xd8, 0x00]), [0xed, 0xa0, 0x80]);
    }
}

//! 8.3 names for longer ones. They are not stored, but derived from the name. So two names in a
//! directory may, rarely, have the same 8.3 name, which then means either of them.

/// Returns the 8.3 name in upper case. It is the name itself if that is one. Otherwise, it has up
/// to five characters, `~`, two characters of a hash, and the extension.
pub(crate) fn name(long: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(long)
        && is_short(text)
    {
        return text.to_ascii_uppercase();
    }
    let (base, extension) = match long.iter().rposition(|b| *b == b'.') {
        Some(dot) if dot > 0 => long.split_at(dot),
        _ => (long, &[][..]),
    };
    let base: String = plain(base).take(5).collect();
    let extension: String = plain(extension).take(3).collect();
    let hash = hash(long);
    let digit = |value: u32| char::from_digit(value % 36, 36).unwrap_or('0');
    let mut out = format!("{base}~{}{}", digit(hash), digit(hash / 36));
    if !extension.is_empty() {
        out.push('.');
        out.push_str(&extension);
    }
    out.to_ascii_uppercase()
}

/// Returns whether a name that was not found might be a derived 8.3 name.
pub(crate) fn could_be(name: &[u8]) -> bool {
    name.len() <= 12 && name.contains(&b'~')
}

fn plain(part: &[u8]) -> impl Iterator<Item = char> {
    let keeps = |b: &&u8| b.is_ascii_alphanumeric() || b"_-".contains(b);
    part.iter().filter(keeps).map(|b| char::from(*b))
}

fn is_short(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'()-@^_`{}~".contains(c);
    let (base, extension) = name.split_once('.').unwrap_or((name, "x"));
    (1..=8).contains(&base.len())
        && (1..=3).contains(&extension.len())
        && base.chars().chain(extension.chars()).all(fits)
}

/// Returns the FNV-1a hash of the bytes, ignoring case.
fn hash(name: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (sum ^ u32::from(byte.to_ascii_uppercase())).wrapping_mul(0x0100_0193)
    };
    let sum = name.iter().fold(0x811c_9dc5, step);
    sum ^ (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_short_and_stay() {
        assert_eq!(name(b"readme.txt"), "README.TXT");
        for long in [
            "a long name.document",
            "x y",
            ".profile",
            "ünïcode.txt",
            "a.b.c",
        ] {
            let short = name(long.as_bytes());
            assert!(is_short(&short), "{short}");
            assert!(could_be(short.as_bytes()));
            assert_eq!(short, name(long.as_bytes()));
            assert_eq!(name(short.as_bytes()), short);
        }
        assert_ne!(name(b"a long name 1"), name(b"a long name 2"));
    }
}

//! Names: UTF-16LE on the wire, WTF-8 on the volume.
//!
//! A component that Windows reserves is refused with `OBJECT_NAME_INVALID` before it reaches the
//! volume. Some names on the volume are invalid on Windows (`a:b`, `x?`, a trailing dot). They are
//! shown with the private-use characters that Samba and Apple use (U+F001 and following), and the
//! same characters are translated back.

use crate::wire::status::Status;

/// The longest path in a request, in bytes of UTF-16 (MS-FSCC 2.1.5: 32,760 characters).
const PATH_BYTES_MAX: usize = 65_520;
/// The longest component, in UTF-16 units (MS-FSCC 2.1.5.2).
const COMPONENT_UNITS_MAX: usize = 255;

/// Characters that are invalid in names on Windows, and the replacement of each.
const PRIVATE: [(char, char); 9] = [
    ('"', '\u{f020}'),
    ('*', '\u{f021}'),
    (':', '\u{f022}'),
    ('<', '\u{f023}'),
    ('>', '\u{f024}'),
    ('?', '\u{f025}'),
    ('\\', '\u{f026}'),
    ('|', '\u{f027}'),
    ('\u{7f}', '\u{f07f}'),
];
/// The replacements of a space and of a dot at a name's end.
const PRIVATE_SPACE: char = '\u{f028}';
const PRIVATE_DOT: char = '\u{f029}';

/// Converts UTF-16LE to WTF-8. Lone surrogates are kept, as three bytes each. Returns `None` for an
/// odd number of bytes.
pub(crate) fn to_wtf8(utf16: &[u8]) -> Option<Vec<u8>> {
    let (units, rest) = utf16.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(utf16.len());
    for unit in char::decode_utf16(units.iter().map(|u| u16::from_le_bytes(*u))) {
        match unit {
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => out.extend_from_slice(&surrogate_bytes(lone.unpaired_surrogate())),
        }
    }
    Some(out)
}

/// Returns the three WTF-8 bytes of a lone surrogate.
fn surrogate_bytes(unit: u16) -> [u8; 3] {
    let low = |value: u16| u8::try_from(value & 0x3f).unwrap_or(0) | 0x80;
    [0xed, low(unit >> 6), low(unit)]
}

/// Converts WTF-8 to UTF-16LE. Invalid bytes become U+FFFD, so such a name is listed but cannot be
/// found.
pub(crate) fn to_utf16(wtf8: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(wtf8.len().saturating_mul(2));
    let mut put = |unit: u16| out.extend_from_slice(&unit.to_le_bytes());
    let mut bytes = wtf8;
    while !bytes.is_empty() {
        match bytes.first_chunk::<3>() {
            Some([0xed, b @ 0xa0..=0xbf, c @ 0x80..=0xbf]) => {
                put(0xd000 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f));
                bytes = bytes.get(3..).unwrap_or(&[]);
            }
            _ => {
                let Some(chunk) = bytes.utf8_chunks().next() else {
                    break;
                };
                let mut units = [0; 2];
                for c in chunk.valid().chars() {
                    c.encode_utf16(&mut units).iter().for_each(|u| put(*u));
                }
                bytes = bytes.get(chunk.valid().len()..).unwrap_or(&[]);
                let lone = matches!(bytes, [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..]);
                if !chunk.invalid().is_empty() && !lone {
                    put(0xfffd);
                    bytes = bytes.get(chunk.invalid().len()..).unwrap_or(&[]);
                }
            }
        }
    }
    out
}

/// Returns a name as the client sees it. Characters that are invalid on Windows are replaced.
pub(crate) fn shown(name: &[u8]) -> Vec<u8> {
    let ends_ill = matches!(name.last(), Some(b'.' | b' '));
    let plain = |b: &u8| !(*b < 0x20 || PRIVATE.iter().any(|(c, _)| *c == char::from(*b)));
    if !ends_ill && name.iter().all(plain) {
        return name.to_vec();
    }
    let mut out = Vec::with_capacity(name.len().saturating_add(8));
    for (at, byte) in name.iter().enumerate() {
        let last = at.saturating_add(1) == name.len();
        match private(char::from(*byte), last) {
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.push(*byte),
        }
    }
    out
}

fn private(c: char, last: bool) -> Option<char> {
    if last && c == ' ' {
        return Some(PRIVATE_SPACE);
    }
    if last && c == '.' {
        return Some(PRIVATE_DOT);
    }
    if c < ' ' {
        return char::from_u32(0xf000_u32.saturating_add(u32::from(c)));
    }
    let found = PRIVATE.iter().find(|(plain, _)| *plain == c);
    found.map(|(_, private)| *private)
}

/// Returns the volume's name for a component that a client sent.
fn meant(component: &str) -> String {
    let back = |c: char| match c {
        PRIVATE_SPACE => ' ',
        PRIVATE_DOT => '.',
        '\u{f001}'..='\u{f01f}' => char::from_u32(u32::from(c).saturating_sub(0xf000)).unwrap_or(c),
        other => {
            let found = PRIVATE.iter().find(|(_, private)| *private == other);
            found.map_or(other, |(plain, _)| *plain)
        }
    };
    component.chars().map(back).collect()
}

/// A path in a request, as components from the share's root on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Path {
    pub(crate) components: Vec<Vec<u8>>,
    /// Whether it ended with `\`, and so can only mean a directory.
    pub(crate) dir_only: bool,
}

impl Path {
    /// Parses a path: components separated by `\`, none of them empty or `.`. A component followed
    /// by `..` is dropped together with it, whatever it leads to. A component `name::$DATA` at the
    /// end means `name`.
    ///
    /// # Errors
    /// `OBJECT_NAME_INVALID`; `INVALID_PARAMETER` for a leading `\`; `OBJECT_PATH_SYNTAX_BAD` for
    /// `.`, and for a `..` that leaves the root.
    pub(crate) fn parse(utf16: &[u8]) -> Result<Self, Status> {
        if utf16.len() > PATH_BYTES_MAX {
            return Err(Status::NAME_TOO_LONG);
        }
        let wtf8 = to_wtf8(utf16).ok_or(Status::INVALID_PARAMETER)?;
        if wtf8.is_empty() {
            return Ok(Self::default());
        }
        if wtf8.starts_with(b"\\") {
            return Err(Status::INVALID_PARAMETER);
        }
        let dir_only = wtf8.ends_with(b"\\");
        let inner = wtf8.strip_suffix(b"\\").unwrap_or(&wtf8);
        let mut parts: Vec<&[u8]> = inner.split(|b| *b == b'\\').collect();
        if let Some(last) = parts.last_mut() {
            *last = without_data_stream(last);
        }
        let mut components = Vec::new();
        for part in parts {
            if part == b".." {
                components.pop().ok_or(Status::OBJECT_PATH_SYNTAX_BAD)?;
            } else {
                components.push(component(part)?);
            }
        }
        Ok(Self {
            components,
            dir_only,
        })
    }

    /// Returns the path with `\` before each component, as the client sees it.
    pub(crate) fn show(components: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for component in components {
            out.push(b'\\');
            out.extend_from_slice(&shown(component));
        }
        out
    }
}

/// A path on the volume, relative to the share's root, as an open stores it. It is in a single
/// allocation, and had at most [`PATH_MAX`](volary_session::PATH_MAX) bytes when it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptPath(Box<[u8]>);

impl KeptPath {
    /// Returns the path with these components, which the volume has, so they contain no `/`.
    pub(crate) fn new(components: &[Vec<u8>]) -> Self {
        Self(components.join(&b'/').into())
    }

    /// Returns the components. The root has none.
    pub(crate) fn components(&self) -> Vec<Vec<u8>> {
        if self.is_root() {
            return Vec::new();
        }
        self.0.split(|b| *b == b'/').map(<[u8]>::to_vec).collect()
    }

    /// Returns the last component, or `None` for the root.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        let last = self.0.rsplit(|b| *b == b'/').next();
        last.filter(|_| !self.is_root())
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

/// Removes `::$DATA`, which names a file's only stream.
fn without_data_stream(last: &[u8]) -> &[u8] {
    const DATA: &[u8] = b"::$DATA";
    match last
        .len()
        .checked_sub(DATA.len())
        .map(|at| last.split_at(at))
    {
        Some((name, suffix)) if !name.is_empty() && suffix.eq_ignore_ascii_case(DATA) => name,
        _ => last,
    }
}

/// Checks a component, and returns the volume's name for it.
///
/// # Errors
/// `OBJECT_NAME_INVALID`; `OBJECT_PATH_SYNTAX_BAD`.
pub(crate) fn component(name: &[u8]) -> Result<Vec<u8>, Status> {
    if name == b"." || name == b".." {
        return Err(Status::OBJECT_PATH_SYNTAX_BAD);
    }
    let bad = |b: &u8| *b < 0x20 || b"\"*/:<>?|\\".contains(b);
    if name.is_empty() || name.iter().any(bad) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    let meant = match std::str::from_utf8(name) {
        Ok(text) => meant(text).into_bytes(),
        // It has a lone surrogate, so it does not consist of private characters.
        Err(_) => name.to_vec(),
    };
    let units = to_utf16(&meant).len() / 2;
    let slash = meant.iter().any(|b| *b == b'/' || *b == 0);
    if units > COMPONENT_UNITS_MAX || slash || is_device(&meant) || is_dots(&meant) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    Ok(meant)
}

fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

/// Returns whether a Windows client would open a device with this name: `CON`, `nul.txt`, `COM1`.
fn is_device(name: &[u8]) -> bool {
    let base = name.split(|b| *b == b'.').next().unwrap_or(name);
    let base = base.trim_ascii_end();
    let numbered = |prefix: &[u8]| {
        base.len() == 4
            && base
                .get(..3)
                .is_some_and(|b| b.eq_ignore_ascii_case(prefix))
            && base.last().is_some_and(|b| matches!(b, b'1'..=b'9'))
    };
    [&b"CON"[..], b"PRN", b"AUX", b"NUL"]
        .iter()
        .any(|device| base.eq_ignore_ascii_case(device))
        || numbered(b"COM")
        || numbered(b"LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn parse(text: &str) -> Result<Vec<String>, Status> {
        let path = Path::parse(&utf16(text))?;
        let text = |c: &Vec<u8>| String::from_utf8_lossy(c).into_owned();
        Ok(path.components.iter().map(text).collect())
    }

    #[test]
    fn paths_come_apart_at_backslashes() {
        assert_eq!(parse("").unwrap(), Vec::<String>::new());
        assert_eq!(parse("a\\b c\\é").unwrap(), ["a", "b c", "é"]);
        assert_eq!(parse("a::$data").unwrap(), ["a"]);
        assert_eq!(parse("a\\..\\b").unwrap(), ["b"]);
        assert!(Path::parse(&utf16("dir\\")).unwrap().dir_only);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (path, status) in [
            ("\\a", Status::INVALID_PARAMETER),
            ("a\\\\b", Status::OBJECT_NAME_INVALID),
            ("a:b", Status::OBJECT_NAME_INVALID),
            ("a/b", Status::OBJECT_NAME_INVALID),
            ("a\\..\\..", Status::OBJECT_PATH_SYNTAX_BAD),
            (".", Status::OBJECT_PATH_SYNTAX_BAD),
            ("nul.txt", Status::OBJECT_NAME_INVALID),
            ("com3", Status::OBJECT_NAME_INVALID),
            ("\u{f029}\u{f029}", Status::OBJECT_NAME_INVALID),
            ("x*", Status::OBJECT_NAME_INVALID),
        ] {
            assert_eq!(parse(path), Err(status), "{path}");
        }
        assert_eq!(Path::parse(&[0x61]), Err(Status::INVALID_PARAMETER));
        assert_eq!(parse(&"x".repeat(256)), Err(Status::OBJECT_NAME_INVALID));
        assert!(parse(&"x".repeat(255)).is_ok());
        assert_eq!(parse("com10").unwrap(), ["com10"]);
    }

    #[test]
    fn a_kept_path_has_the_components_that_it_was_made_of() {
        for path in [&[][..], &["a"], &["dir", "b c", "\u{e9}"]] {
            let path: Vec<Vec<u8>> = path.iter().map(|c| c.as_bytes().to_vec()).collect();
            let kept = KeptPath::new(&path);
            assert_eq!(kept.components(), path);
            assert_eq!(kept.name(), path.last().map(Vec::as_slice));
        }
    }

    #[test]
    fn names_that_windows_lacks_come_back() {
        for name in [
            "a:b",
            "what?",
            "end.",
            "end ",
            "tab\there",
            "a\\b",
            "del\u{7f}",
        ] {
            let seen = String::from_utf8(shown(name.as_bytes())).unwrap();
            assert_ne!(seen, name);
            assert_eq!(component(seen.as_bytes()).unwrap(), name.as_bytes());
        }
        assert_eq!(shown("plain é.txt".as_bytes()), "plain é.txt".as_bytes());
    }

    #[test]
    fn lone_surrogates_come_back() {
        let mut wire = utf16("a");
        wire.extend([0x00, 0xd8]);
        wire.extend(utf16("b😀"));
        wire.extend([0xff, 0xdf]);
        let name = to_wtf8(&wire).unwrap();
        assert_eq!(to_utf16(&name), wire);
        assert_eq!(to_utf16(b"\xff"), [0xfd, 0xff]);
        assert_eq!(to_utf16(b"a\xed\xa0"), [b'a', 0, 0xfd, 0xff, 0xfd, 0xff]);
    }
}

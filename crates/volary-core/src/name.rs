//! Names: checked bytes.

use crate::Kind;

/// The name of an entry: bytes that are not empty, not `.` or `..`, and hold
/// neither `/` nor NUL. Formats with UTF-16 names use WTF-8, so that lone
/// surrogates keep their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(&'a [u8]);

/// Why bytes are not a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// No bytes.
    Empty,
    /// `.` or `..`.
    Dots,
    /// Holds `/` or NUL.
    Byte,
}

impl From<BadName> for crate::Error {
    fn from(_: BadName) -> Self {
        Kind::Invalid.into()
    }
}

impl<'a> Name<'a> {
    /// Checks `bytes`.
    ///
    /// # Errors
    /// [`BadName`], in the order of its variants.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadName> {
        if bytes.is_empty() {
            return Err(BadName::Empty);
        }
        if bytes == b"." || bytes == b".." {
            return Err(BadName::Dots);
        }
        if bytes.iter().any(|&b| b == b'/' || b == 0) {
            return Err(BadName::Byte);
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl std::fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", crate::escape(self.0))
    }
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::escape(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_refused_with_its_reason() {
        assert_eq!(Name::new(b""), Err(BadName::Empty));
        assert_eq!(Name::new(b"."), Err(BadName::Dots));
        assert_eq!(Name::new(b".."), Err(BadName::Dots));
        assert_eq!(Name::new(b"a/b"), Err(BadName::Byte));
        assert_eq!(Name::new(b"a\0"), Err(BadName::Byte));
        assert_eq!(Name::new(b"...").unwrap().as_bytes(), b"...");
    }
}

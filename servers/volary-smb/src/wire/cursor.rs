//! [`Cursor`]: parses bytes from a client.

/// Bytes are missing, or malformed: a request is shorter than it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short;

/// A position in bytes, which advances as they are read. Numbers are little-endian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the unread bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Short> {
        self.take(len).map(|_| ())
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Returns `len` bytes of `bytes` from `offset` on, which is how requests refer to their parts.
pub(crate) fn part(bytes: &[u8], offset: usize, len: usize) -> Result<&[u8], Short> {
    bytes
        .get(offset..)
        .and_then(|rest| rest.get(..len))
        .ok_or(Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0]);
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.u16(), Ok(2));
        assert_eq!(cursor.u64(), Err(Short), "nothing is read if it is short");
        assert_eq!(cursor.u32(), Ok(3));
        assert!(cursor.is_empty());
        assert_eq!(cursor.u8(), Err(Short));
    }

    #[test]
    fn parts_lie_within() {
        assert_eq!(part(b"abcd", 1, 2), Ok(&b"bc"[..]));
        assert_eq!(part(b"abcd", 4, 0), Ok(&b""[..]));
        assert_eq!(part(b"abcd", 5, 0), Err(Short));
        assert_eq!(part(b"abcd", 1, usize::MAX), Err(Short));
    }
}

//! XDR (RFC 4506): a checked reader of received bytes, and a writer.

/// The error for bytes that do not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage;

/// The result of decoding.
pub type Decoded<T> = Result<T, Garbage>;

/// The bytes still to decode. Nothing is copied, and a length is not trusted before that many bytes
/// are there.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Returns a cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let (now, rest) = self.0.split_at_checked(len).ok_or(Garbage)?;
        self.0 = rest;
        Ok(now)
    }

    /// Returns `N` bytes, without padding: `N` must be a multiple of four.
    ///
    /// # Errors
    /// [`Garbage`] if fewer bytes remain.
    pub fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let (now, rest) = self.0.split_first_chunk::<N>().ok_or(Garbage)?;
        self.0 = rest;
        Ok(*now)
    }

    /// Reads a 32-bit number.
    ///
    /// # Errors
    /// [`Garbage`] if fewer bytes remain.
    pub fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a 64-bit number.
    ///
    /// # Errors
    /// [`Garbage`] if fewer bytes remain.
    pub fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a boolean.
    ///
    /// # Errors
    /// [`Garbage`] for a number other than 0 and 1, and if fewer bytes remain.
    pub fn bool(&mut self) -> Decoded<bool> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Garbage),
        }
    }

    /// Reads variable-length bytes, at most `max`, with their padding.
    ///
    /// # Errors
    /// [`Garbage`] if there are more than `max`, and if fewer bytes remain.
    pub fn opaque(&mut self, max: usize) -> Decoded<&'a [u8]> {
        let len = usize::try_from(self.u32()?).map_err(|_| Garbage)?;
        if len > max {
            return Err(Garbage);
        }
        let bytes = self.take(len)?;
        self.take(padding(len))?;
        Ok(bytes)
    }

    /// Reads an array of at most `max` numbers, after their count.
    ///
    /// # Errors
    /// [`Garbage`] if there are more than `max`, and if fewer bytes remain.
    pub fn numbers(&mut self, max: usize) -> Decoded<impl Iterator<Item = u32> + use<'a>> {
        let count = usize::try_from(self.u32()?).map_err(|_| Garbage)?;
        if count > max {
            return Err(Garbage);
        }
        let bytes = self.take(count * 4)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|n| u32::from_be_bytes(*n)))
    }
}

/// Returns the number of padding bytes after `len` bytes.
pub const fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

/// A buffer for encoded bytes. It can be reused without being zeroed again; only the bytes before
/// `len` count.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// Returns an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the written bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Discards all written bytes, but keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Discards all written bytes, and frees memory beyond `max` bytes.
    pub fn shrink(&mut self, max: usize) {
        self.len = 0;
        self.bytes.truncate(max);
        self.bytes.shrink_to_fit();
    }

    /// Returns how many bytes were written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Discards all bytes from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends `len` bytes of undefined content, and returns them.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.len;
        let end = start + len;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.len = end;
        self.bytes.get_mut(start..end).unwrap_or_default()
    }

    /// Appends bytes without a length or padding.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, n: u32) {
        self.raw(&n.to_be_bytes());
    }

    /// Appends a 64-bit number.
    pub fn u64(&mut self, n: u64) {
        self.raw(&n.to_be_bytes());
    }

    /// Appends a boolean.
    pub fn bool(&mut self, b: bool) {
        self.u32(b.into());
    }

    /// Appends bytes, with their length before and their padding after them.
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.u32(count(bytes.len()));
        self.raw(bytes);
        self.room(padding(bytes.len())).fill(0);
    }

    /// Overwrites the 32-bit number at `place`.
    pub fn patch(&mut self, place: usize, n: u32) {
        let end = self.len.min(place + 4);
        if let Some(there) = self.bytes.get_mut(place..end)
            && there.len() == 4
        {
            there.copy_from_slice(&n.to_be_bytes());
        }
    }
}

/// Converts a count of things in memory to XDR's 32 bits.
pub fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut out = Output::new();
        out.u32(7);
        out.u64(1 << 40);
        out.bool(true);
        out.opaque(b"abcde");
        out.opaque(b"");
        out.patch(0, 8);
        assert_eq!(out.bytes().len(), 4 + 8 + 4 + 12 + 4);
        let mut input = Input::new(out.bytes());
        assert_eq!(input.u32(), Ok(8));
        assert_eq!(input.u64(), Ok(1 << 40));
        assert_eq!(input.bool(), Ok(true));
        assert_eq!(input.opaque(5), Ok(&b"abcde"[..]));
        assert_eq!(input.opaque(5), Ok(&b""[..]));
        assert_eq!(input.u32(), Err(Garbage));
    }

    #[test]
    fn a_buffer_that_is_used_again_shows_nothing_of_before() {
        let mut out = Output::new();
        out.raw(&[0xff; 64]);
        out.clear();
        out.opaque(b"a");
        assert_eq!(out.bytes(), [0, 0, 0, 1, b'a', 0, 0, 0]);
    }

    #[test]
    fn lengths_are_not_believed() {
        for bytes in [
            &[0xff, 0xff, 0xff, 0xff, 1][..],
            &[0, 0, 0, 5, 1, 2, 3, 4, 5],
            &[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0, 0, 0],
        ] {
            assert_eq!(Input::new(bytes).opaque(8), Err(Garbage), "{bytes:?}");
            assert!(Input::new(bytes).numbers(2).is_err(), "{bytes:?}");
        }
        assert_eq!(Input::new(&[0, 0, 0, 2]).bool(), Err(Garbage));
    }
}

//! [`Out`]: encodes bytes for a client.

/// Bytes that are being encoded. Numbers are little-endian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out(Vec<u8>);

impl Out {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_capacity(len: usize) -> Self {
        Self(Vec::with_capacity(len))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn zeros(&mut self, len: usize) -> &mut Self {
        self.0.resize(self.0.len().saturating_add(len), 0);
        self
    }

    /// Pads with zeros to the next multiple of `step` from the start.
    pub(crate) fn align(&mut self, step: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(step), 0);
        self
    }

    /// Stores a number in four bytes that were reserved for it.
    ///
    /// # Panics
    /// If they were not. `at` is always the caller's own, and never from a client.
    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Returns the encoded bytes.
    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Returns text in UTF-16.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a length as a 32-bit number.
///
/// # Panics
/// If it needs more than 32 bits. Replies are limited far below that.
pub(crate) fn len32(len: usize) -> u32 {
    u32::try_from(len).expect("a reply is shorter than 4 GiB")
}

//! Little-endian fields: appends lengths, and reads values at an offset.

use crate::wire::Out;

impl Out {
    /// Appends a 32-bit length.
    pub(crate) fn len32(&mut self, len: usize) -> &mut Self {
        self.u32(u32::try_from(len).unwrap_or(u32::MAX))
    }

    /// Appends a 16-bit length.
    pub(crate) fn len16(&mut self, len: usize) -> &mut Self {
        self.u16(u16::try_from(len).unwrap_or(u16::MAX))
    }

    /// Appends an 8-bit length.
    pub(crate) fn len8(&mut self, len: usize) -> &mut Self {
        self.u8(u8::try_from(len).unwrap_or(u8::MAX))
    }
}

/// Returns the byte at `at`.
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the 16-bit value at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the 32-bit value at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the 64-bit value at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the 16 bytes at `at`.
pub(crate) fn id_at(bytes: &[u8], at: usize) -> Option<[u8; 16]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns `len` bytes at `at`.
pub(crate) fn slice_at(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..)?.get(..len)
}

/// Returns `len` bytes at `at`, which both come from a request.
pub(crate) fn part(bytes: &[u8], at: u32, len: u32) -> Option<&[u8]> {
    slice_at(bytes, usize::try_from(at).ok()?, usize::try_from(len).ok()?)
}

//! Writing and reading of little-endian message bodies.

pub(crate) const HEADER_LEN: usize = 64;

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A body being written.
#[derive(Clone, Default)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl Body {
    pub(crate) fn new(structure_size: u16) -> Self {
        Self::default().u16(structure_size)
    }
    pub(crate) fn u8(mut self, n: u8) -> Self {
        self.0.push(n);
        self
    }
    pub(crate) fn u16(mut self, n: u16) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(crate) fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(crate) fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    pub(crate) fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

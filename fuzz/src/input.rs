//! Reading choices from bytes.

/// Bytes that choices are read from. When they are used up, every choice is 0.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// From bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether there are no more.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// Two bytes, low one first.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Up to `max` bytes.
    pub fn bytes(&mut self, max: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(max.min(self.0.len()));
        self.0 = rest;
        now
    }
}

//! [`Body`]: the part after a reply's header, in memory that also has room for the header.
//!
//! So a reply is signed, sealed and sent in one piece, wherever its bytes came from.

use super::header::HEADER_LEN;

/// The body of a reply.
#[derive(Debug)]
pub(crate) struct Body {
    /// The message, with room for the header at its start.
    message: Vec<u8>,
}

impl Body {
    /// The bytes that are reserved for the header.
    pub(crate) const ROOM: usize = HEADER_LEN;

    /// Returns the body after the first [`ROOM`](Self::ROOM) bytes.
    pub(crate) fn of_message(mut message: Vec<u8>) -> Self {
        let len = message.len().max(Self::ROOM);
        message.resize(len, 0);
        Self { message }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.message.get(Self::ROOM..).unwrap_or_default()
    }

    /// Pads with zeros to a multiple of 8 bytes.
    pub(crate) fn pad(&mut self) {
        let padded = self.message.len().next_multiple_of(8);
        self.message.resize(padded, 0);
    }

    /// Returns the whole message, after storing its header.
    pub(crate) fn with_header(&mut self, header: &[u8; HEADER_LEN]) -> &mut [u8] {
        for (to, from) in self.message.iter_mut().zip(header) {
            *to = *from;
        }
        &mut self.message
    }

    /// Returns the whole message, whose header was stored before.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    pub(crate) fn into_message(self) -> Vec<u8> {
        self.message
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        let mut message = Vec::with_capacity(Self::ROOM + bytes.len());
        message.resize(Self::ROOM, 0);
        message.extend_from_slice(&bytes);
        Self { message }
    }
}

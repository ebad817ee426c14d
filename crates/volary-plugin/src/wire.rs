//! The protocol between a host and the process of a plug-in, in bytes.
//!
//! A frame is a length, a tag, a number and a body ([`Head`]). A connection carries one request at
//! a time, and its reply; parallel requests use several connections. A body is a sequence of
//! fields, little-endian; bytes are preceded by their length. A frame is refused as a whole if it
//! exceeds its bound, ends too early or has bytes left over.
//!
//! | module | what |
//! |---|---|
//! | `field` | the encoding of each type |
//! | `message` | requests and replies |

mod field;
mod message;

pub(crate) use field::{Field, bytes, finished};
pub(crate) use message::{Caller, Event, Hello, Listed, Request, error, failed};

/// The most file content that a request carries, in bytes.
pub(crate) const DATA_MAX: usize = 16 << 20;
/// The most file content that a reply carries, in bytes; longer reads take several requests.
pub(crate) const FRAME_DATA: usize = 1 << 20;
/// The longest reply without file content, in bytes.
pub(crate) const REPLY_MAX: usize = 4 << 20;
/// The longest frame: data, names and groups.
pub(crate) const FRAME_MAX: usize = DATA_MAX + (4 << 20);

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Request = 1,
    /// The caller of the running request has lost interest.
    Cancel = 2,
    Reply = 3,
    Event = 4,
}

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes of the body.
    pub(crate) len: u32,
    pub(crate) tag: Tag,
    /// The number of the request; a reply repeats it.
    pub(crate) id: u64,
    /// For a reply: 0, or the error's code.
    pub(crate) status: i32,
}

impl Head {
    pub(crate) const LEN: usize = 17;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let parts = [
            &self.len.to_le_bytes()[..],
            &[self.tag as u8],
            &self.id.to_le_bytes(),
            &self.status.to_le_bytes(),
        ];
        let all = parts.into_iter().flatten();
        out.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        out
    }

    /// Parses a head; `None` if it is invalid.
    pub(crate) fn parse(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let mut from = &bytes[..];
        let len = u32::take(&mut from)?;
        let tag = match u8::take(&mut from)? {
            1 => Tag::Request,
            2 => Tag::Cancel,
            3 => Tag::Reply,
            4 => Tag::Event,
            _ => return None,
        };
        let id = u64::take(&mut from)?;
        let status = i32::take(&mut from)?;
        (len as usize <= FRAME_MAX).then_some(Self {
            len,
            tag,
            id,
            status,
        })
    }
}

#[cfg(test)]
mod tests;

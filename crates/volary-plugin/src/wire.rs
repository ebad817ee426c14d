//! What a host and the process of a plug-in say to each other, as bytes.
//!
//! A frame is a length, a tag, a number and a body ([`Head`]). A connection carries one request at
//! a time, and its reply; several connections carry several. Bodies are fields one after the
//! other, little-endian, bytes with their length in front. Whatever is longer than its bound,
//! ends too early or goes on past its end is refused whole.
//!
//! | module | what |
//! |---|---|
//! | `field` | how each type is written and read |
//! | `message` | requests and replies |

mod field;
mod message;

pub(crate) use field::{Field, bytes, finished};
pub(crate) use message::{Caller, Event, Hello, Listed, Request, error, failed};

/// The most that a request or a reply carries of a file.
pub(crate) const DATA_MAX: usize = 16 << 20;
/// The most of a read or write that goes in one frame: longer ones are made of several.
pub(crate) const FRAME_DATA: usize = 1 << 20;
/// The most that a reply has besides a file's content.
pub(crate) const REPLY_MAX: usize = 4 << 20;
/// The longest frame: data, names and groups.
pub(crate) const FRAME_MAX: usize = DATA_MAX + (4 << 20);

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Request = 1,
    /// The caller of the request at work has lost interest.
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
    /// The request's number; that of the request in its reply.
    pub(crate) id: u64,
    /// Of a reply: 0, or the error's code.
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

    /// Reads one; `None` for what is none.
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

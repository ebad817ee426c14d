//! [`Extent`]: where the bytes of a file are.

use std::ops::Range;

/// A stretch of a file, and the place of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Where the bytes are.
    pub place: Place,
}

impl Extent {
    /// Appends the extent of these bytes of the file to a file's extents. Lengthens the last one
    /// instead if the new one continues it, in the file and in its place.
    pub fn append(all: &mut Vec<Self>, bytes: Range<u64>, place: Place) {
        let len = bytes.end - bytes.start;
        if let Some(last) = all.last_mut() {
            let follows = last.offset + last.len == bytes.start;
            let is_same = match (last.place, place) {
                (Place::Device(before), Place::Device(after)) => before + last.len == after,
                (Place::Hole, Place::Hole) => true,
                _ => false,
            };
            if follows && is_same {
                last.len += len;
                return;
            }
        }
        all.push(Self {
            offset: bytes.start,
            len,
            place,
        });
    }
}

/// Where the bytes of an [`Extent`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this byte offset on the volume's device.
    Device(u64),
    /// Nowhere: the bytes are zero.
    Hole,
    /// In a form that only `read` understands: inline, compressed, encrypted.
    Encoded,
}

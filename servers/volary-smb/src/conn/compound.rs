//! Compounds (MS-SMB2 3.3.5.2.7, 3.3.4.1.3): several messages in one.

use crate::client::Broken;
use crate::wire::Header;
use crate::wire::header::{self, HEADER_LEN};

/// The requests of a message, each from its header to the start of the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests<'a>(Option<&'a [u8]>);

impl<'a> Requests<'a> {
    /// Returns the requests of a message.
    ///
    /// # Errors
    /// [`Broken`] if there are more than `max`, or one is incomplete, or does not begin at a
    /// multiple of 8 bytes.
    pub(super) fn of(message: &'a [u8], max: usize) -> Result<Self, Broken> {
        let all = Self(Some(message));
        let mut rest = message;
        for _ in 0..max {
            if !rest.starts_with(&header::MAGIC) {
                return Err(Broken);
            }
            let next = Header::parse(rest).map_err(|_| Broken)?.next_command as usize;
            if next == 0 {
                return Ok(all);
            }
            if !next.is_multiple_of(8) || next < HEADER_LEN {
                return Err(Broken);
            }
            rest = rest.get(next..).ok_or(Broken)?;
        }
        Err(Broken)
    }
}

impl<'a> Iterator for Requests<'a> {
    /// A header, the whole request, and whether it is the last one.
    type Item = (Header, &'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.take()?;
        let header = Header::parse(rest).ok()?;
        let next = header.next_command as usize;
        if next == 0 {
            return Some((header, rest, true));
        }
        let (this, rest) = rest.split_at_checked(next)?;
        self.0 = Some(rest);
        Some((header, this, false))
    }
}

/// See [`crate::fuzzing`].
#[cfg(feature = "fuzzing")]
pub(crate) fn take_apart(bytes: &[u8]) {
    if let Ok(requests) = Requests::of(bytes, 16) {
        let len: usize = requests.map(|(_, message, _)| message.len()).sum();
        assert_eq!(len, bytes.len(), "every byte is in one request");
    }
}

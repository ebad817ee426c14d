//! SESSION_SETUP (MS-SMB2 2.2.5, 2.2.6).

use super::cursor::part;
use super::header::HEADER_LEN;
use super::{Cursor, Out, Short};

/// `Flags`: the session belongs to another connection.
pub(crate) const BINDING: u8 = 1;
/// `SessionFlags`: messages must be encrypted.
pub(crate) const ENCRYPT_DATA: u16 = 4;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) flags: u8,
    pub(crate) security_mode: u8,
    pub(crate) previous_session_id: u64,
    pub(crate) token: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses a request, from its header on.
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(message.get(HEADER_LEN..).ok_or(Short)?);
        if c.u16()? != 25 {
            return Err(Short);
        }
        let (flags, security_mode) = (c.u8()?, c.u8()?);
        c.skip(8)?;
        let (offset, len) = (c.u16()?, c.u16()?);
        Ok(Self {
            flags,
            security_mode,
            previous_session_id: c.u64()?,
            token: part(message, offset.into(), len.into())?,
        })
    }
}

/// Returns a response's body.
pub(crate) fn response(session_flags: u16, token: &[u8]) -> Vec<u8> {
    let mut out = Out::with_capacity(8 + token.len());
    out.u16(9).u16(session_flags);
    out.u16(HEADER_LEN as u16 + 8);
    out.u16(u16::try_from(token.len()).unwrap_or(0));
    out.bytes(token);
    out.done()
}

//! IOCTL (MS-SMB2 2.2.31, 2.2.32).

use super::cursor::part;
use super::header::HEADER_LEN;
use super::{Cursor, Out, Short};
use crate::wire::FileId;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) code: u32,
    pub(crate) file: FileId,
    pub(crate) input: &'a [u8],
    pub(crate) output_max: u32,
    /// Whether the IOCTL is an FSCTL.
    pub(crate) is_fsctl: bool,
}

impl<'a> Request<'a> {
    /// Parses a request, from its header on.
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(message.get(HEADER_LEN..).ok_or(Short)?);
        if c.u16()? != 57 {
            return Err(Short);
        }
        c.skip(2)?;
        let code = c.u32()?;
        let file = FileId {
            persistent: c.u64()?,
            volatile: c.u64()?,
        };
        let (input_at, input_len) = (c.u32()? as usize, c.u32()? as usize);
        c.skip(12)?;
        let output_max = c.u32()?;
        let is_fsctl = c.u32()? & 1 != 0;
        let input_at = if input_len == 0 { 0 } else { input_at };
        Ok(Self {
            code,
            file,
            input: part(message, input_at, input_len)?,
            output_max,
            is_fsctl,
        })
    }
}

/// Returns a response's body.
pub(crate) fn response(code: u32, file: FileId, output: &[u8]) -> Vec<u8> {
    const OUTPUT_AT: u32 = HEADER_LEN as u32 + 48;
    let mut out = Out::with_capacity(48 + output.len());
    out.u16(49).u16(0).u32(code);
    out.u64(file.persistent).u64(file.volatile);
    out.u32(OUTPUT_AT).u32(0);
    out.u32(OUTPUT_AT).u32(super::out::len32(output.len()));
    out.u32(0).u32(0).bytes(output);
    out.done()
}

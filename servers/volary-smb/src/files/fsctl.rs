//! FSCTLs, the supported kind of IOCTL (MS-SMB2 2.2.31, 2.2.32): the request, and the response.

use crate::wire::FileId;
use crate::wire::{Out, out::len32};

/// A request.
pub(super) struct Asked<'a> {
    pub(super) code: u32,
    pub(super) input: &'a [u8],
    /// The room in the reply, in bytes.
    pub(super) max: usize,
}

/// Returns the response.
pub(super) fn reply(code: u32, id: FileId, output: &[u8]) -> Vec<u8> {
    const OUTPUT_AT: u32 = 64 + 48;
    let mut out = Out::with_capacity(output.len().saturating_add(48));
    out.u16(49)
        .u16(0)
        .u32(code)
        .u64(id.persistent)
        .u64(id.volatile);
    out.u32(OUTPUT_AT)
        .u32(0)
        .u32(OUTPUT_AT)
        .u32(len32(output.len()));
    out.u32(0).u32(0).bytes(output);
    out.done()
}

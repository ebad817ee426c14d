//! Files: nodes with all their records, and the content of their attributes. Also finds the `$MFT`,
//! which is a file itself. May use `disk` and `mft`.

pub(crate) mod bitmap;
pub(crate) mod extents;
pub(crate) mod lznt1;
pub(crate) mod node;
pub(crate) mod opening;
pub(crate) mod stream;

//! Files: a node with all records that it goes on in, what its attributes hold, and how the `$MFT`, which
//! is a file itself, is found. May use `disk` and `mft`.

pub(crate) mod bitmap;
pub(crate) mod extents;
pub(crate) mod lznt1;
pub(crate) mod node;
pub(crate) mod opening;
pub(crate) mod stream;

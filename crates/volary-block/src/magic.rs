//! The start of a qcow2 image.

/// The first bytes of every qcow2 image.
pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// The length of the header of version 3 without its extensions. The header of version 2 is its
/// first part.
pub(crate) const HEADER_LEN: usize = 104;

//! How a qcow2 image begins.

/// The first bytes of every one.
pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// Length of the header of version 3 without its extensions; that of version 2
/// is a part of it.
pub(crate) const HEADER_LEN: usize = 104;

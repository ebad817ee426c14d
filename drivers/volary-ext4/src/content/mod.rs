//! What an inode holds: where its blocks lie, the bytes of files and symlinks, and extended attributes.
//! May use `disk`, `fast` and `inodes`.

pub(crate) mod extents;
pub(crate) mod file;
pub(crate) mod indirect;
pub(crate) mod map;
pub(crate) mod xattr;

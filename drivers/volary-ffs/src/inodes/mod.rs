//! Inodes as stored and in memory, the places of their bytes, and their extended attributes. May
//! use `disk`.

pub(crate) mod blocks;
pub(crate) mod inode;
pub(crate) mod node;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod xattr;

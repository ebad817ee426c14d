//! Structures as they are stored, the checked superblock, inodes, where the bytes of files lie, entries
//! of directories: what reads need. Uses nothing of the others.

pub(crate) mod blocks;
pub(crate) mod dir;
pub(crate) mod inode;
pub(crate) mod ondisk;
pub(crate) mod volume;

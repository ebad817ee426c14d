//! Group descriptors, and the inodes in the groups' tables. May use `disk` and `fast`.

pub(crate) mod groups;
pub(crate) mod inode;
pub(crate) mod tables;

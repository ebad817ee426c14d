//! Inspects a volume that is not attached. May use `disk`, `inodes`, `groups` and `directory`.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

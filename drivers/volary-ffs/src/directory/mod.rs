//! Directories as they are read: entries, listings, and where names are. May use `disk` and
//! `inodes`.

pub(crate) mod dir;
pub(crate) mod index;
pub(crate) mod listing;
pub(crate) mod lookup;

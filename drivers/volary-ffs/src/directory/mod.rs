//! Reading directories: entries, listings, and lookups of names. May use `disk` and `inodes`.

pub(crate) mod dir;
pub(crate) mod index;
pub(crate) mod listing;
pub(crate) mod lookup;

//! Indexes, directories, and the order of names. May use `disk`, `mft` and `files`.

pub(crate) mod dir;
pub(crate) mod index;
pub(crate) mod upcase;

//! Calls on nodes and on entries of directories: each notes in what is known what its reply says.
//! May use `wire`, `server` and `known`.

pub(crate) mod entries;
pub(crate) mod export;

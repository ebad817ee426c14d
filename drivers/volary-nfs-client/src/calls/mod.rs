//! Calls that act on nodes and directory entries. Each records what its reply says in `known`.
//! May use `wire`, `server` and `known`.

pub(crate) mod entries;
pub(crate) mod export;

//! Calls on nodes and directory entries. Each stores the attributes of its reply in `known`. May
//! use `wire`, `server` and `known`.

pub(crate) mod entries;
pub(crate) mod export;

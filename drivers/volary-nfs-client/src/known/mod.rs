//! Caches of nodes and names, and how long they are valid; bytes in memory. Nothing here makes a
//! call. May use `wire`.

pub(crate) mod attr_cache;
pub(crate) mod bounded;
pub(crate) mod data;
pub(crate) mod name_cache;
pub(crate) mod node;
pub(crate) mod nodes;

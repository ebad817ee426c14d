//! The opens, and the locks taken through them. May use `wire`, `server`, `known` and `calls`.

pub(crate) mod claims;
pub(crate) mod listing;
pub(crate) mod locks;
pub(crate) mod nlm;
pub(crate) mod open;
pub(crate) mod owners;

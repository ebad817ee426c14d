//! Bytes and attributes: write-behind, read-ahead, and attributes that include written data. May
//! use `wire`, `known` and `calls`.

pub(crate) mod ahead;
pub(crate) mod attrs;
pub(crate) mod behind;
pub(crate) mod room;
pub(crate) mod workers;

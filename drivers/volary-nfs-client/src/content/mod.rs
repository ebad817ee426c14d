//! Bytes and attributes: written behind, read ahead, and shown once the server has what was written.
//! May use `wire`, `known` and `calls`.

pub(crate) mod ahead;
pub(crate) mod attrs;
pub(crate) mod behind;
pub(crate) mod room;
pub(crate) mod workers;

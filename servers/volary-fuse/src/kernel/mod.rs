//! What the kernel and the session call things, each from the other, and what the kernel knows: its node
//! ids, and what it must forget. Uses `options`.

pub(crate) mod errno;
pub(crate) mod events;
pub(crate) mod nodes;
pub(crate) mod told;
pub(crate) mod types;

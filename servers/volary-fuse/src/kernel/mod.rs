//! The kernel's view of the volume: types and error numbers, node ids, what the kernel is told, and
//! what it must drop. Uses `options`.

pub(crate) mod errno;
pub(crate) mod events;
pub(crate) mod nodes;
pub(crate) mod told;
pub(crate) mod types;

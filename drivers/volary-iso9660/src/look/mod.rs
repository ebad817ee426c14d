//! Inspects a volume that is not attached. May use `disk`, `extensions` and `tree`.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

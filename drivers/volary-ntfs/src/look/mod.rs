//! Inspects a volume that is not attached. May use all rooms above but `attached`.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

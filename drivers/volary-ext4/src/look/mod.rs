//! A volume that is not attached, for people to look at. May use all rooms above.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

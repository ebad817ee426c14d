//! A volume that is not attached, for people to look at. May use all rooms above but `attached`.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

//! A volume that is not attached, for people to look at. May use `disk`, `inodes`, `groups` and
//! `directory`.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

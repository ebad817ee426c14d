//! A volume that is looked at: the superblock in words, structures as stored, what lies where.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;

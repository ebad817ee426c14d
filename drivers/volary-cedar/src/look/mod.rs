//! A volume that is looked at or relabelled: its root, structures as stored, what lies where.

pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod map;
pub(crate) mod roots;
pub(crate) mod tune;

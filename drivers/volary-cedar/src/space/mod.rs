//! Which pages are in use: the allocation map in memory, what is kept for open files that grow, what a
//! commit takes and gives back, and what of a logged map has yet to go home. Uses `disk`.

pub(crate) mod delta;
pub(crate) mod map_home;
pub(crate) mod reserve;
pub(crate) mod vam;

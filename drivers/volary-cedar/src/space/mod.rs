//! What the allocation map is made of: pages in use, room kept for open files that grow, what a commit takes
//! and gives back, pages that have yet to go home. `commit` has the map itself. Uses `disk`.

pub(crate) mod delta;
pub(crate) mod map_home;
pub(crate) mod reserve;
pub(crate) mod vam;

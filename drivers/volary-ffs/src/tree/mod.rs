//! Names, and the nodes with them, as a change sees them. May use all rooms above.

pub(crate) mod entries;
pub(crate) mod names;
pub(crate) mod rename;

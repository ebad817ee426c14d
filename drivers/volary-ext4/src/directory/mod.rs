//! Directories: their entries, the hash trees over them, looking up and listing. May use all rooms
//! above.

pub(crate) mod dir;
pub(crate) mod htree;
pub(crate) mod listing;

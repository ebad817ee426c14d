//! An attached volume: its state in memory, the commit, and the operations of the file system. May
//! use all rooms above.

pub(crate) mod ahead;
pub(crate) mod commit;
pub(crate) mod fs;
pub(crate) mod head;
pub(crate) mod operations;
pub(crate) mod quota;

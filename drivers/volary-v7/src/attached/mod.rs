//! An attached volume: the order of commits, the operations. Uses the rooms above.

pub(crate) mod commit;
pub(crate) mod fs;
pub(crate) mod operations;

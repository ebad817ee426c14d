//! An attached volume: its options, its opens, and the operations of the file system. May use all
//! rooms above but `scan`.

pub(crate) mod ahead;
pub(crate) mod fs;
pub(crate) mod operations;

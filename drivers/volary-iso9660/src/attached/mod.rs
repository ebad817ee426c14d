//! An attached volume: its options, its opens, and the operations of the file system. May use
//! `disk`, `extensions` and `tree`.

pub(crate) mod fs;
pub(crate) mod operations;

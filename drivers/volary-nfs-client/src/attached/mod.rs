//! An attached volume: content through opens, names, open files without names, listings, and the
//! file system operations. May use all other rooms.

pub(crate) mod attach;
mod dirs;
mod files;
mod fs;
mod hidden;
mod names;
mod operations;
mod tree;

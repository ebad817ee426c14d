//! An attached volume: content through opens, names, open files that have none, listings, and the
//! operations of the file system. May use all rooms.

pub(crate) mod attach;
mod dirs;
mod files;
mod fs;
mod hidden;
mod names;
mod operations;
mod tree;

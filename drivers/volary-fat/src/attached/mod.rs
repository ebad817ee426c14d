//! An attached volume: nodes and how they are found, files, attributes, the commit, and the operations
//! of the file system. May use all rooms but the tools (`check`, `make`, `tune`, `look`).

mod attrs;
mod births;
mod commit;
mod create;
mod entries;
mod file;
pub(crate) mod fs;
mod node;
mod opens;
mod operations;
mod owners;
mod parents;
mod readdir;
mod remove;
mod rename;
mod tree;

//! A change in progress, which is done as a whole or undone: inodes and bytes, room, the block map,
//! content and attributes. May use all rooms above but `directory`.

pub(crate) mod attrs;
pub(crate) mod bmap;
pub(crate) mod edit;
pub(crate) mod epoch;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod realloc;
pub(crate) mod room;

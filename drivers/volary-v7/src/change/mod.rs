//! A change under way: inodes and bytes, what it takes of the free lists, addresses, content and
//! attributes; all of it is made or taken back. Uses `disk`.

pub(crate) mod alloc;
pub(crate) mod attrs;
pub(crate) mod bmap;
pub(crate) mod edit;
pub(crate) mod epoch;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod node;
pub(crate) mod room;

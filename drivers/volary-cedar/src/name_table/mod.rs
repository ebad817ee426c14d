//! The file name table as stored: cells in pages, pages in two copies, keys and what they lead to.
//! Uses `disk`.

pub(crate) mod entry;
pub(crate) mod page;
pub(crate) mod table;

//! The tree of names: entries of directories, links, removals, renames. Uses `change` and `disk`.

pub(crate) mod entries;
pub(crate) mod names;
pub(crate) mod rename;

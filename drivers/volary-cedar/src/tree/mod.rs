//! The name table as a B-tree, and walks of the whole of it. Uses the rooms up to `commit`.

pub(crate) mod btree;
pub(crate) mod walk;

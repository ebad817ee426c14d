//! The operations, grouped by what they work on. Uses the rooms above.

pub(crate) mod ahead;
pub(crate) mod attrs;
pub(crate) mod content;
pub(crate) mod create;
pub(crate) mod dirs;
pub(crate) mod files;
pub(crate) mod locks;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod together;
pub(crate) mod xattrs;

//! The metadata of a node: its form, owner, mode, times and extended attributes. May use all rooms
//! above.

pub(crate) mod attr;
pub(crate) mod form;
pub(crate) mod reparse;
pub(crate) mod secure;
pub(crate) mod security;
pub(crate) mod xattr;

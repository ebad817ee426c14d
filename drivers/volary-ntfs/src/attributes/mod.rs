//! What there is to know of a node but its content: what it is, its owner, mode and times, its extended
//! attributes. May use all rooms above.

pub(crate) mod attr;
pub(crate) mod form;
pub(crate) mod reparse;
pub(crate) mod secure;
pub(crate) mod security;
pub(crate) mod xattr;

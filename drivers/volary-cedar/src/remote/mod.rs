//! Files of a remote volume: links to them, copies of them, and the way there. May use all of the volume's own
//! modules; of those only `cedar` uses it, and `xattrs`, for the name of an attribute.

pub(crate) mod attached;
mod cache;
mod connection;
mod fetch;
mod fs;
pub(crate) mod link;

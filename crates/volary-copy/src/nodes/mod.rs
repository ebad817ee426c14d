//! What both ends of a copy need to know of a node: its places, its names, its attributes, and
//! stretches that the host can copy. May use `told`.
//!
//! | module | what |
//! |---|---|
//! | `place` | places in volumes |
//! | `ids` | which node of a source or a target is which |
//! | `links` | nodes with several names |
//! | `xattrs` | extended attributes, and DOS attributes in one |
//! | `host_range` | stretches of a volume's file that the host copies from the image |

pub(crate) mod host_range;
pub(crate) mod ids;
pub(crate) mod links;
pub(crate) mod place;
pub(crate) mod xattrs;

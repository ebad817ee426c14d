//! Identifiers of nodes, opens, and places in a directory.

use std::num::NonZeroU64;

/// Identifies a node of a volume, for ever.
///
/// `ino` is unique among the nodes that exist at one moment. With `generation`, it is unique for as
/// long as the format can guarantee. The id of a node that is gone is answered with
/// [`Kind::Stale`](crate::Kind::Stale), never with another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// The node's number, as `st_ino` gives it.
    pub ino: NonZeroU64,
    /// Distinguishes nodes that have had the same number, one after the other.
    pub generation: u32,
}

impl NodeId {
    /// Returns a node id, or `None` if `ino` is 0.
    pub fn new(ino: u64, generation: u32) -> Option<Self> {
        Some(Self {
            ino: NonZeroU64::new(ino)?,
            generation,
        })
    }
}

/// One open of one node. Given by [`FileSystem::open`](crate::FileSystem::open),
/// ended by [`FileSystem::close`](crate::FileSystem::close).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenId(pub u64);

/// A place between two entries of a directory. Opaque to all but the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cookie(pub u64);

impl Cookie {
    /// Before the first entry.
    pub const START: Self = Self(0);
}

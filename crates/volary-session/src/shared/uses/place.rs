//! The entry that an open came through.

use volary_core::{Caps, NodeId, same_name};

/// An entry: a directory and a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dir: NodeId,
    pub(crate) name: Box<[u8]>,
}

impl Place {
    pub(crate) fn new(dir: NodeId, name: &[u8]) -> Self {
        Self {
            dir,
            name: name.into(),
        }
    }
}

/// How a volume names its nodes: decides when two places of one node are the same entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    many_names: bool,
    case_sensitive: bool,
}

impl Naming {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            many_names: caps.has(Caps::HARD_LINKS),
            case_sensitive: caps.has(Caps::CASE_SENSITIVE),
        }
    }

    /// Returns whether two places of one node are the same entry. Without hard links, a node has
    /// only one entry in a directory, however its name is spelled (other case, short name).
    pub(crate) fn is_same(&self, a: &Place, b: &Place) -> bool {
        if a.dir != b.dir {
            return false;
        }
        !self.many_names
            || a.name == b.name
            || (!self.case_sensitive && same_name(&a.name, &b.name))
    }
}

//! Opens: which node each is of.

use crate::attached::Attached;
use crate::node::Node;
use std::sync::Arc;
use volary_core::{Mode, OpenId};

/// One open.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) node: Arc<Node>,
    pub(crate) mode: Mode,
}

impl Attached {
    /// Adds an open of a node. Its body or that of its directory must be locked, which keeps a
    /// removal out.
    pub(crate) fn add_open(&self, node: Arc<Node>, mode: Mode) -> OpenId {
        self.opens.add(node.id.ino.get(), Open { node, mode })
    }

    /// Whether a node is open.
    pub(crate) fn is_open(&self, node: &Node) -> bool {
        self.opens.is_open(node.id.ino.get())
    }
}

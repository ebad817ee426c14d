//! Opens: which node each is of.

use crate::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::Mode;
use volary_ondisk::{Count, SharedOpens};

/// One open.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) node: Arc<Node>,
    pub(crate) mode: Mode,
}

/// The open table. Nodes count their opens, for those that write to ask without a lock.
pub(crate) type Opens = SharedOpens<Open, InNode>;

/// Counts opens in their nodes.
#[derive(Default)]
pub(crate) struct InNode;

impl Count<Open> for InNode {
    fn up(&mut self, _: u64, open: &Open) {
        open.node.opens.fetch_add(1, Ordering::AcqRel);
    }

    fn down(&mut self, _: u64, open: &Open) -> bool {
        open.node.opens.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

//! What is found wrong in passing, until somebody asks for it.

use std::collections::BTreeSet;
use volary_core::Untold;

/// Most files that are known to be told of.
const MOST: usize = 1000;

/// Findings that nobody has been told of.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) untold: Untold,
    /// Files whose leaders were told of.
    told: BTreeSet<u64>,
}

impl Found {
    /// Returns whether the leader of a file is to be told of: once for each file and attachment.
    pub(crate) fn tells(&mut self, uid: u64) -> bool {
        self.told.len() < MOST && self.told.insert(uid)
    }
}

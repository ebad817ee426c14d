//! The bytes and nodes that owners have taken.

use std::collections::BTreeMap;
use volary_core::{Attr, FileKind};

/// Returns the bytes of a node that count against the limit.
pub(super) fn bytes_of(attr: &Attr) -> u64 {
    match attr.kind {
        FileKind::File | FileKind::Symlink => attr.size,
        _ => 0,
    }
}

/// What one owner, or all together, have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes: u64,
    pub(super) nodes: u64,
}

/// The shares of all owners. An owner without any nodes has no entry.
#[derive(Debug, Default)]
pub(super) struct Used {
    all: Share,
    owners: BTreeMap<u32, Share>,
}

impl Used {
    /// Returns the share of one owner, or of all together.
    pub(super) fn of(&self, owner: Option<u32>) -> Share {
        match owner {
            None => self.all,
            Some(uid) => self.owners.get(&uid).copied().unwrap_or_default(),
        }
    }

    /// Returns the first owner with any nodes, from number `from` on.
    pub(super) fn next(&self, from: u32) -> Option<(u32, Share)> {
        let next = self.owners.range(from..).next();
        next.map(|(&uid, &share)| (uid, share))
    }

    pub(super) fn add(&mut self, uid: u32, bytes: u64, nodes: u64) {
        for share in [&mut self.all, self.owners.entry(uid).or_default()] {
            share.bytes = share.bytes.saturating_add(bytes);
            share.nodes = share.nodes.saturating_add(nodes);
        }
    }

    pub(super) fn take(&mut self, uid: u32, bytes: u64, nodes: u64) {
        let owner = self.owners.entry(uid).or_default();
        for share in [&mut self.all, &mut *owner] {
            share.bytes = share.bytes.saturating_sub(bytes);
            share.nodes = share.nodes.saturating_sub(nodes);
        }
        if *owner == Share::default() {
            self.owners.remove(&uid);
        }
    }
}

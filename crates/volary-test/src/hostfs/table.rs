//! Nodes and opens, each held by a descriptor.

use super::attr;
use super::errno::from_errno;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode as HostMode, OFlags, openat};
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{Attr, Entry, Kind, Name, NodeId, OpenId, Result};

/// All that is held.
#[derive(Default)]
pub(super) struct Table {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    nodes: HashMap<NodeId, Arc<OwnedFd>>,
    opens: HashMap<OpenId, Arc<Opened>>,
    last_open: u64,
}

/// One open.
pub(super) struct Opened {
    pub(super) node: NodeId,
    pub(super) fd: OwnedFd,
    /// Taken while the descriptor's own offset is used.
    pub(super) offset: Mutex<()>,
}

impl Table {
    /// Returns the descriptor of a node.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn node(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        let held = self.held.lock();
        held.nodes
            .get(&node)
            .cloned()
            .ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the descriptor of a directory that still has a name.
    ///
    /// # Errors
    /// `Stale`, `NotDir`.
    pub(super) fn dir(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        let fd = self.node(node)?;
        let attr = attr::of(&fd)?;
        if attr.kind != volary_core::FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if attr.nlink == 0 {
            return Err(Kind::Stale.into());
        }
        Ok(fd)
    }

    /// Returns the node that `fd` was opened for, held from now on.
    pub(super) fn hold(&self, fd: OwnedFd) -> Result<Entry> {
        let attr = attr::of(&fd)?;
        let mut held = self.held.lock();
        held.nodes.entry(attr.node).or_insert_with(|| Arc::new(fd));
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Returns the node that `name` leads to.
    pub(super) fn find(&self, dir: &OwnedFd, name: Name<'_>) -> Result<Entry> {
        self.find_bytes(dir, name.as_bytes())
    }

    /// Returns the node that a name of any bytes, `..` too, leads to.
    pub(super) fn find_bytes(&self, dir: &OwnedFd, name: &[u8]) -> Result<Entry> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(dir, name, flags, HostMode::empty()).map_err(from_errno)?;
        self.hold(fd)
    }

    /// Returns what `name` leads to, if anything, without holding it.
    pub(super) fn glance(dir: &OwnedFd, name: Name<'_>) -> Option<Attr> {
        let stat = rustix::fs::statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().and_then(|s| attr::from_stat(&s))
    }

    /// Lets go of a node that has neither a name nor an open.
    pub(super) fn drop_if_gone(&self, node: NodeId) {
        let mut held = self.held.lock();
        if held.opens.values().any(|o| o.node == node) {
            return;
        }
        let Some(fd) = held.nodes.get(&node).cloned() else {
            return;
        };
        if attr::of(&fd).map_or(true, |a| a.nlink == 0) {
            held.nodes.remove(&node);
        }
    }

    pub(super) fn add_open(&self, node: NodeId, fd: OwnedFd) -> OpenId {
        let mut held = self.held.lock();
        held.last_open += 1;
        let id = OpenId(held.last_open << 8 | 3);
        let opened = Opened {
            node,
            fd,
            offset: Mutex::new(()),
        };
        held.opens.insert(id, Arc::new(opened));
        id
    }

    /// Returns an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn open(&self, open: OpenId) -> Result<Arc<Opened>> {
        let held = self.held.lock();
        held.opens
            .get(&open)
            .cloned()
            .ok_or_else(|| Kind::Stale.into())
    }

    /// Ends an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn close(&self, open: OpenId) -> Result<()> {
        let opened = self.held.lock().opens.remove(&open).ok_or(Kind::Stale)?;
        let node = opened.node;
        drop(opened);
        self.drop_if_gone(node);
        Ok(())
    }

    /// Lets go of everything.
    pub(super) fn clear(&self) {
        let mut held = self.held.lock();
        held.nodes.clear();
        held.opens.clear();
    }
}

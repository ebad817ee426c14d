//! The nodes and opens, each with a descriptor.

use super::attr;
use super::errno::from_errno;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode as HostMode, OFlags, openat};
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{Attr, Entry, Kind, Name, NodeId, OpenId, Result};

/// All nodes and opens.
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

/// An open file or directory.
pub(super) struct Opened {
    pub(super) node: NodeId,
    pub(super) fd: OwnedFd,
    /// Locked while the descriptor's own offset is used.
    pub(super) offset: Mutex<()>,
}

impl Table {
    /// Returns the descriptor of a node.
    ///
    /// # Errors
    /// `Stale` if the node is unknown.
    pub(super) fn node(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        let held = self.held.lock();
        held.nodes
            .get(&node)
            .cloned()
            .ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the descriptor of a directory that has not been removed.
    ///
    /// # Errors
    /// `Stale`, or `NotDir` if the node is no directory.
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

    /// Returns the node of `fd`, and keeps `fd` for it from now on.
    pub(super) fn hold(&self, fd: OwnedFd) -> Result<Entry> {
        let attr = attr::of(&fd)?;
        let mut held = self.held.lock();
        held.nodes.entry(attr.node).or_insert_with(|| Arc::new(fd));
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Returns the node of `name`.
    pub(super) fn find(&self, dir: &OwnedFd, name: Name<'_>) -> Result<Entry> {
        self.find_bytes(dir, name.as_bytes())
    }

    /// Returns the node of a name that need not be valid, such as `..`.
    pub(super) fn find_bytes(&self, dir: &OwnedFd, name: &[u8]) -> Result<Entry> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(dir, name, flags, HostMode::empty()).map_err(from_errno)?;
        self.hold(fd)
    }

    /// Returns the attributes of the node of `name`, if there is one, without keeping a descriptor.
    pub(super) fn glance(dir: &OwnedFd, name: Name<'_>) -> Option<Attr> {
        let stat = rustix::fs::statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().and_then(|s| attr::from_stat(&s))
    }

    /// Drops the descriptor of a node that has neither a name nor an open.
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
    /// `Stale` if the open is unknown.
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
    /// `Stale` if the open is unknown.
    pub(super) fn close(&self, open: OpenId) -> Result<()> {
        let opened = self.held.lock().opens.remove(&open).ok_or(Kind::Stale)?;
        let node = opened.node;
        drop(opened);
        self.drop_if_gone(node);
        Ok(())
    }

    /// Drops all nodes and opens.
    pub(super) fn clear(&self) {
        let mut held = self.held.lock();
        held.nodes.clear();
        held.opens.clear();
    }
}

//! Extended attributes.

use crate::held::attachment::Attachment;
use crate::kernel::error::from_errno_on_node;
use crate::kernel::proc::path_of;
use crate::reach::tree::Tree;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::Arc;
use volary_core::{Caps, Kind, NodeId, Result};

/// The prefix of the extended attributes that a volume has. Others change what the host permits its
/// own users.
const USER: &[u8] = b"user.";

/// The extended attributes of nodes.
pub(crate) struct Xattrs {
    attachment: Arc<Attachment>,
    tree: Arc<Tree>,
}

impl Xattrs {
    pub(crate) fn new(attachment: Arc<Attachment>, tree: Arc<Tree>) -> Self {
        Self { attachment, tree }
    }

    /// Returns a path to a node, and the descriptor that keeps the path valid.
    fn path(&self, node: NodeId) -> Result<(Arc<OwnedFd>, String)> {
        let (_, fd) = self.tree.node(node)?;
        let path = path_of(&fd);
        Ok((fd, path))
    }

    /// See [`getxattr`](volary_core::FileSystem::getxattr).
    pub(crate) fn get(&self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.attachment.check_able(Caps::XATTRS)?;
        if !name.starts_with(USER) {
            return Err(Kind::NoXattr.into());
        }
        let (_fd, path) = self.path(node)?;
        with_room(|room| rustix::fs::getxattr(&path, name, room))
    }

    /// See [`listxattr`](volary_core::FileSystem::listxattr).
    pub(crate) fn list(&self, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.attachment.check_able(Caps::XATTRS)?;
        let (_fd, path) = self.path(node)?;
        let all = with_room(|room| rustix::fs::listxattr(&path, room))?;
        let names = all.split(|&b| b == 0).filter(|n| n.starts_with(USER));
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// See [`setxattr`](volary_core::FileSystem::setxattr).
    pub(crate) fn set(&self, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.attachment.check_able(Caps::XATTRS)?;
        self.attachment.check_writable()?;
        if !name.starts_with(USER) {
            return Err(Kind::Unsupported.into());
        }
        let (_fd, path) = self.path(node)?;
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, name, value, flags).map_err(from_errno_on_node)
    }

    /// See [`removexattr`](volary_core::FileSystem::removexattr).
    pub(crate) fn remove(&self, node: NodeId, name: &[u8]) -> Result<()> {
        self.attachment.check_able(Caps::XATTRS)?;
        self.attachment.check_writable()?;
        if !name.starts_with(USER) {
            return Err(Kind::NoXattr.into());
        }
        let (_fd, path) = self.path(node)?;
        rustix::fs::removexattr(&path, name).map_err(from_errno_on_node)
    }
}

/// The longest value or list that Linux returns: `XATTR_SIZE_MAX`, `XATTR_LIST_MAX`.
const XATTR_MAX: usize = 64 << 10;

/// Calls `get` with a small buffer, and with the largest one if that does not suffice.
fn with_room(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Result<Vec<u8>> {
    let mut room = vec![0; 1024];
    let got = match get(&mut room) {
        Err(Errno::RANGE) => {
            room = vec![0; XATTR_MAX];
            get(&mut room)
        }
        got => got,
    };
    room.truncate(got.map_err(from_errno_on_node)?);
    Ok(room)
}

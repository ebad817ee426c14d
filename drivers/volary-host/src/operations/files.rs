//! Opens of nodes, from the first descriptor to the last close.

use crate::held::attachment::Attachment;
use crate::held::nodes::Nodes;
use crate::held::opens::Opens;
use crate::kernel::error::{from_errno, from_errno_on_node};
use crate::kernel::proc::path_of;
use crate::kernel::stat::look;
use crate::operations::locks::Locks;
use crate::reach::resolve::{SAFE, open_dir};
use crate::reach::root::Root;
use crate::reach::tree::Tree;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode as HostMode, OFlags};
use std::sync::Arc;
use volary_core::{Caps, FileKind, Kind, Lock, Mode, NodeId, OpenId, Result};

/// The open files and directories.
pub(crate) struct Files {
    attachment: Arc<Attachment>,
    root: Root,
    nodes: Arc<Nodes>,
    opens: Arc<Opens>,
    tree: Arc<Tree>,
    locks: Locks,
}

impl Files {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        root: Root,
        nodes: Arc<Nodes>,
        opens: Arc<Opens>,
        tree: Arc<Tree>,
    ) -> Self {
        Self {
            attachment,
            root,
            nodes,
            opens,
            tree,
            locks: Locks::default(),
        }
    }

    /// See [`open`](volary_core::FileSystem::open).
    pub(crate) fn open(&self, node: NodeId, mode: Mode) -> Result<OpenId> {
        let (kind, fd) = self.descriptor(node, mode)?;
        Ok(self.enter(node, kind, mode, fd))
    }

    /// Returns the kind of a node, and a descriptor for an open of it.
    ///
    /// # Errors
    /// As [`open`](volary_core::FileSystem::open).
    pub(crate) fn descriptor(&self, node: NodeId, mode: Mode) -> Result<(FileKind, OwnedFd)> {
        let writes = mode != Mode::Read;
        // A node that is known to be a file can be opened at once.
        if self.tree.is_file_by_id(node) {
            self.check_open(writes, FileKind::File)?;
            let fd = self.nodes.with_descriptors(|| {
                let fd = self.tree.open_id(node, SAFE | flags_of(mode))?;
                self.opens.check_number(&fd).map(|()| fd)
            })?;
            return Ok((FileKind::File, fd));
        }
        let (kind, fd) = self.tree.node(node)?;
        self.check_open(writes, kind)?;
        let fd = self.nodes.with_descriptors(|| {
            let fd = match kind {
                FileKind::Dir => open_dir(&fd)?,
                _ => {
                    self.tree.attr_by(node, &fd)?;
                    rustix::fs::open(path_of(&fd), SAFE | flags_of(mode), HostMode::empty())
                        .map_err(from_errno_on_node)?
                }
            };
            self.opens.check_number(&fd).map(|()| fd)
        })?;
        Ok((kind, fd))
    }

    /// Checks that a node of this kind can be opened.
    ///
    /// # Errors
    /// `Stale`, `IsDir`, `Invalid`, `ReadOnly`.
    fn check_open(&self, writes: bool, kind: FileKind) -> Result<()> {
        self.attachment.check_attached()?;
        match kind {
            FileKind::Dir if writes => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if writes {
            self.attachment.check_writable()?;
        }
        Ok(())
    }

    /// Adds an open of a node with this descriptor.
    pub(crate) fn enter(&self, node: NodeId, kind: FileKind, mode: Mode, fd: OwnedFd) -> OpenId {
        let open = self.opens.add(node, kind, mode, fd);
        if node != self.root.node {
            self.nodes.add_open(&open);
        }
        open.id
    }

    /// See [`close`](volary_core::FileSystem::close).
    pub(crate) fn close(&self, id: OpenId) -> Result<()> {
        let open = self.opens.remove(id)?;
        self.locks.end_open(&open);
        // A node without names need not be remembered, and a held descriptor would keep its space
        // allocated. If the last name goes only after this check, the removal itself finds that the
        // node is no longer open.
        let last = self.nodes.end_open(&open);
        if last && look(&open.fd, b"").is_ok_and(|stat| stat.stx_nlink == 0) {
            self.nodes.remove(open.node);
        }
        Ok(())
    }

    /// Checks that one more open is possible, before a node is created for it.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.nodes.with_descriptors(|| {
            let next = rustix::io::fcntl_dupfd_cloexec(&self.root.fd, 0).map_err(from_errno)?;
            self.opens.check_number(&next)
        })
    }

    /// See [`lock`](volary_core::FileSystem::lock).
    pub(crate) fn lock(&self, id: OpenId, lock: Lock) -> Result<()> {
        let open = self.opens.get(id)?;
        self.attachment.check_able(Caps::SHARED_LOCKS)?;
        self.locks.set(&open, lock)
    }

    /// Ends all opens, and removes all known nodes.
    pub(crate) fn clear(&self) {
        self.locks.clear();
        self.nodes.clear();
        self.opens.clear();
    }
}

fn flags_of(mode: Mode) -> OFlags {
    match mode {
        Mode::Read => OFlags::RDONLY,
        Mode::Write => OFlags::WRONLY,
        Mode::ReadWrite => OFlags::RDWR,
    }
}

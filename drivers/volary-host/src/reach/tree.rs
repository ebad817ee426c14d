//! Every way from a node to its descriptor, and the bookkeeping for nodes that are returned.

use crate::held::attachment::Attachment;
use crate::held::ids::Ids;
use crate::held::nodes::{Nodes, Seen, Way};
use crate::kernel::error::{elsewhere, from_errno, from_errno_on_node};
use crate::kernel::stat::{from_statx, look};
use crate::reach::beneath::{Beneath, DEPTH_MAX};
use crate::reach::resolve::{PATH, open_in, open_up};
use crate::reach::root::Root;
use crate::reach::watch::Watchers;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode as HostMode, OFlags};
use rustix::io::Errno;
use std::sync::Arc;
use volary_core::{Attr, Entry, Error, FileKind, Kind, NodeId, Result};

/// The nodes of an attached directory.
pub(crate) struct Tree {
    attachment: Arc<Attachment>,
    root: Root,
    ids: Arc<Ids>,
    nodes: Arc<Nodes>,
    beneath: Beneath,
    watchers: Arc<Watchers>,
}

impl Tree {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        root: Root,
        ids: Arc<Ids>,
        nodes: Arc<Nodes>,
        beneath: Beneath,
        watchers: Arc<Watchers>,
    ) -> Self {
        Self {
            attachment,
            root,
            ids,
            nodes,
            beneath,
            watchers,
        }
    }

    /// Returns a node's kind, and a descriptor of it.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, node: NodeId) -> Result<(FileKind, Arc<OwnedFd>)> {
        self.attachment.check_attached()?;
        if node == self.root.node {
            return Ok((FileKind::Dir, Arc::clone(&self.root.fd)));
        }
        let seen = self.nodes.get(node);
        if let Some(Seen {
            kind, fd: Some(fd), ..
        }) = seen
        {
            return Ok((kind, fd));
        }
        let kind = seen.map(|seen| seen.kind);
        if self.ids.open_by_handle() {
            return self.by_id(node, kind);
        }
        Ok((kind.ok_or(Kind::Stale)?, self.by_way(node)?))
    }

    /// Returns a descriptor of a directory.
    ///
    /// # Errors
    /// `Stale`, `NotDir`.
    pub(crate) fn dir(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        match self.node(node)? {
            (FileKind::Dir, fd) => Ok(fd),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Opens a node by its id. A node that is not known is first verified to lie beneath the root.
    /// Descriptors of directories are held, because names will be looked up in them. Others are
    /// not, because they would keep the space of removed files allocated.
    fn by_id(&self, node: NodeId, kind: Option<FileKind>) -> Result<(FileKind, Arc<OwnedFd>)> {
        let fd = self.open_id(node, PATH)?;
        let kind = match kind {
            Some(kind) => kind,
            None => {
                let attr = self.attr_by(node, &fd)?;
                if !self.beneath.has(&attr, &fd)? {
                    return Err(Kind::Stale.into());
                }
                self.nodes.note(node, attr.kind, 0, None, None);
                attr.kind
            }
        };
        let fd = Arc::new(fd);
        if kind == FileKind::Dir {
            self.hold(node, &fd);
        }
        Ok((kind, fd))
    }

    /// Opens a node by its id, and forgets it if it is gone.
    ///
    /// # Errors
    /// `Stale` if there is no such node; those of the host.
    pub(crate) fn open_id(&self, node: NodeId, flags: OFlags) -> Result<OwnedFd> {
        self.nodes
            .with_descriptors(|| self.ids.open(node, flags))
            .inspect_err(|e| {
                if *e == Kind::Stale {
                    self.nodes.remove(node);
                }
            })
    }

    /// Holds a descriptor of a directory, and watches its entries.
    fn hold(&self, node: NodeId, fd: &Arc<OwnedFd>) {
        self.watchers.watch_dir(fd);
        self.nodes.hold(node, Arc::clone(fd));
    }

    /// Reopens a node at the place where it was found last.
    fn by_way(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        let (mut below, mut at) = (Vec::new(), node);
        let mut fd = loop {
            if at == self.root.node {
                break Arc::clone(&self.root.fd);
            }
            let seen = self.nodes.get(at).ok_or(Kind::Stale)?;
            if let Some(fd) = seen.fd {
                break fd;
            }
            let way = seen.way.ok_or(Kind::Stale)?;
            let Way { dir, name } = way;
            below.push((at, name));
            at = dir;
            if below.len() > DEPTH_MAX {
                return Err(Kind::Stale.into());
            }
        };
        while let Some((node, name)) = below.pop() {
            let next = self
                .open_in(&fd, &name, PATH, HostMode::empty())
                .map_err(from_errno_on_node)?;
            if self.ids.node_at(&next, b"")? != node {
                return Err(Kind::Stale.into());
            }
            fd = Arc::new(next);
            self.nodes.hold(node, Arc::clone(&fd));
        }
        Ok(fd)
    }

    /// See [`parent`](volary_core::FileSystem::parent).
    pub(crate) fn above(&self, dir: NodeId) -> Result<Entry> {
        let fd = self.dir(dir)?;
        if dir == self.root.node {
            return self.given(self.ids.of(&fd)?, None, None);
        }
        // A removed directory has no parent.
        self.attr_by(dir, &fd)?;
        let up = open_up(&fd)?;
        let attr = self.ids.of(&up).map_err(|_| Kind::Stale)?;
        if !self.beneath.has_dir(attr.node, &up)? {
            return Err(Kind::Stale.into());
        }
        self.given(attr, None, Some(up))
    }

    /// Notes a node found by `way` as known, and returns its entry. `fd` is held only if nodes
    /// cannot be opened by handle, because otherwise the id is enough.
    pub(crate) fn given(
        &self,
        attr: Attr,
        way: Option<(NodeId, &[u8])>,
        fd: Option<OwnedFd>,
    ) -> Result<Entry> {
        let node = attr.node;
        if node != self.root.node {
            let by_handle = self.ids.open_by_handle();
            let fd = fd.filter(|_| !by_handle).map(Arc::new);
            if let Some(fd) = &fd
                && attr.kind == FileKind::Dir
            {
                self.watchers.watch_dir(fd);
            }
            let way = way.filter(|_| !by_handle);
            self.nodes.note(node, attr.kind, 1, way, fd);
        }
        Ok(Entry { node, attr })
    }

    /// Returns the error for a missing entry of a directory. It becomes `Stale` if the directory
    /// itself is gone.
    pub(crate) fn in_dir(&self, dir: NodeId, fd: impl AsFd, e: Error) -> Error {
        if e != Kind::NotFound {
            return e;
        }
        match self.attr_by(dir, fd) {
            Err(gone) if gone == Kind::Stale => gone,
            Ok(attr) if attr.nlink == 0 => Kind::Stale.into(),
            _ => e,
        }
    }

    /// Returns the attributes of a node by its descriptor.
    ///
    /// # Errors
    /// `Stale` if it has neither a name nor an open.
    pub(crate) fn attr_by(&self, node: NodeId, fd: impl AsFd) -> Result<Attr> {
        let attr = from_statx(node, &look(fd, b"")?)?;
        if attr.nlink == 0 && !self.nodes.is_open(node) {
            self.nodes.remove(node);
            return Err(Kind::Stale.into());
        }
        Ok(attr)
    }

    /// Returns whether a node is known to be a file, and is opened by its id alone.
    pub(crate) fn is_file_by_id(&self, node: NodeId) -> bool {
        let seen = if node == self.root.node {
            None
        } else {
            self.nodes.get(node)
        };
        seen.is_some_and(|seen| seen.kind == FileKind::File) && self.ids.open_by_handle()
    }

    /// Returns a path descriptor of the node that `name` leads to, which cannot read its content.
    ///
    /// # Errors
    /// `CrossVolume` for a mount point; those of the host.
    pub(crate) fn open_path(&self, dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd> {
        let opened = self.open_in(dir, name, PATH, HostMode::empty());
        opened.map_err(|errno| match errno {
            Errno::XDEV => elsewhere(),
            errno => from_errno(errno),
        })
    }

    /// Opens the entry `name` of a directory: see [`open_in`].
    ///
    /// # Errors
    /// Those of the host; `XDEV` for a mount point.
    pub(crate) fn open_in(
        &self,
        dir: impl AsFd,
        name: &[u8],
        flags: OFlags,
        mode: HostMode,
    ) -> rustix::io::Result<OwnedFd> {
        open_in(&self.nodes, dir, name, flags, mode)
    }
}

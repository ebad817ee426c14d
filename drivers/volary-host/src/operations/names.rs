//! Names: looking up, linking, removing and renaming.

use crate::held::attachment::Attachment;
use crate::held::ids::Ids;
use crate::held::nodes::Nodes;
use crate::kernel::error::from_errno;
use crate::kernel::proc::path_of;
use crate::reach::resolve::PATH;
use crate::reach::tree::Tree;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, RenameFlags as HostRename};
use rustix::io::Errno;
use std::sync::Arc;
use volary_core::{Caps, Entry, Error, FileKind, Kind, Name, NodeId, RenameFlags, Result};

/// The names of nodes.
pub(crate) struct Names {
    attachment: Arc<Attachment>,
    root: NodeId,
    ids: Arc<Ids>,
    nodes: Arc<Nodes>,
    tree: Arc<Tree>,
}

impl Names {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        root: NodeId,
        ids: Arc<Ids>,
        nodes: Arc<Nodes>,
        tree: Arc<Tree>,
    ) -> Self {
        Self {
            attachment,
            root,
            ids,
            nodes,
            tree,
        }
    }

    /// See [`lookup`](volary_core::FileSystem::lookup).
    pub(crate) fn find(&self, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let fd = self.tree.dir(dir)?;
        self.find_in(dir, &fd, name.as_bytes())
            .map_err(|e| self.tree.in_dir(dir, &fd, e))
    }

    /// Looks up a name in a directory, and notes its node as known.
    fn find_in(&self, dir: NodeId, fd: &OwnedFd, name: &[u8]) -> Result<Entry> {
        let way = Some((dir, name));
        if self.ids.open_by_handle() {
            return self.tree.given(self.ids.at(fd, name)?, way, None);
        }
        let found = self.tree.open_path(fd, name)?;
        self.tree.given(self.ids.of(&found)?, way, Some(found))
    }

    /// See [`link`](volary_core::FileSystem::link).
    pub(crate) fn link(&self, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.attachment.check_can(Caps::HARD_LINKS)?;
        let (kind, from) = self.tree.node(node)?;
        if kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let to = self.tree.dir(dir)?;
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, path_of(&from), &to, name.as_bytes(), flags).map_err(|e| {
            let e = self.tree.in_dir(dir, &to, from_errno(e));
            // The host found the name, so `NotFound` means that the node has lost its last one.
            match self.tree.attr_by(node, &from) {
                Err(gone) if e == Kind::NotFound => gone,
                _ => e,
            }
        })?;
        let attr = self.tree.attr_by(node, &from)?;
        self.tree.given(attr, Some((dir, name.as_bytes())), None)
    }

    /// See [`unlink`](volary_core::FileSystem::unlink) and
    /// [`rmdir`](volary_core::FileSystem::rmdir).
    pub(crate) fn remove(&self, dir: NodeId, name: Name<'_>, is_dir: bool) -> Result<()> {
        self.attachment.check_writable()?;
        let fd = self.tree.dir(dir)?;
        let flags = if is_dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        let old = self.glance(&fd, name);
        rustix::fs::unlinkat(&fd, name.as_bytes(), flags)
            .map_err(|e| self.tree.in_dir(dir, &fd, from_errno(e)))?;
        self.let_go(old);
        Ok(())
    }

    /// Returns the node that is about to lose this name.
    fn glance(&self, dir: &OwnedFd, name: Name<'_>) -> Option<NodeId> {
        self.ids.node_at(dir, name.as_bytes()).ok()
    }

    /// Forgets a node that has lost its last name. An open node is forgotten at its last close.
    fn let_go(&self, node: Option<NodeId>) {
        let Some((node, seen)) = node.and_then(|node| Some((node, self.nodes.get(node)?))) else {
            return;
        };
        // If the node is gone, both calls give `Stale`, and forget it.
        if let Some(fd) = seen.fd {
            drop(self.tree.attr_by(node, fd));
        } else if self.ids.open_by_handle()
            && let Ok(fd) = self.tree.open_id(node, PATH)
        {
            drop(self.tree.attr_by(node, fd));
        }
    }

    /// See [`rename`](volary_core::FileSystem::rename).
    pub(crate) fn rename(
        &self,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.attachment.check_writable()?;
        let how = match flags {
            RenameFlags::SWAP => {
                self.attachment.check_can(Caps::SWAP)?;
                HostRename::EXCHANGE
            }
            RenameFlags::KEEP => HostRename::NOREPLACE,
            _ => HostRename::empty(),
        };
        let (from_fd, to_fd) = (self.tree.dir(from)?, self.tree.dir(to)?);
        let by_way = !self.ids.open_by_handle();
        let moved = by_way.then(|| self.glance(&from_fd, name)).flatten();
        let replaced = self.glance(&to_fd, new_name);
        let (old, new) = (name.as_bytes(), new_name.as_bytes());
        rustix::fs::renameat_with(&from_fd, old, &to_fd, new, how).map_err(|e| {
            let refused = self.refusal(e, from, &from_fd, name, &to_fd);
            self.tree
                .in_dir(from, &from_fd, self.tree.in_dir(to, &to_fd, refused))
        })?;
        self.moved(moved, to, new);
        if flags == RenameFlags::SWAP {
            self.moved(replaced.filter(|_| by_way), from, old);
        } else {
            self.let_go(replaced);
        }
        Ok(())
    }

    /// Returns the error for a rename that the host refused. Linux checks in another order than the
    /// project promises. It checks the new name before a loop, and the new directory's entries
    /// before its kind.
    fn refusal(
        &self,
        errno: Errno,
        from: NodeId,
        from_fd: &OwnedFd,
        name: Name<'_>,
        to_fd: &OwnedFd,
    ) -> Error {
        let moved = || self.find_in(from, from_fd, name.as_bytes()).ok();
        match errno {
            Errno::NOTEMPTY => match moved() {
                Some(entry) if entry.attr.kind != FileKind::Dir => Kind::IsDir.into(),
                Some(entry) if self.is_at_or_below(to_fd, entry.node) => Kind::Invalid.into(),
                _ => Kind::NotEmpty.into(),
            },
            Errno::EXIST => match moved() {
                Some(entry) if self.is_at_or_below(to_fd, entry.node) => Kind::Invalid.into(),
                _ => Kind::Exists.into(),
            },
            errno => from_errno(errno),
        }
    }

    /// Notes the new place of a node that was moved.
    fn moved(&self, node: Option<NodeId>, dir: NodeId, name: &[u8]) {
        if let Some(node) = node
            && let Some(seen) = self.nodes.get(node)
        {
            self.nodes.note(node, seen.kind, 0, Some((dir, name)), None);
        }
    }

    /// Returns whether `dir` is the node `top`, or lies in it.
    fn is_at_or_below(&self, dir: &OwnedFd, top: NodeId) -> bool {
        let Ok(here) = self.ids.node_at(dir, b"") else {
            return false;
        };
        let mut at = Some(here);
        while let Some(node) = at {
            if node == top {
                return true;
            }
            if node == self.root {
                return false;
            }
            at = self.tree.above(node).ok().map(|entry| entry.node);
        }
        false
    }
}

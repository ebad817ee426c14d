//! Operations on nodes and on the whole volume that are made of others.

use crate::attached::Attached;
use crate::names::Style;
use crate::node::Node;
use std::sync::Arc;
use volary_core::{Ctx, FileKind, Kind, Mode, NodeId, OpenId, Result, SetAttr, StatFs};

impl Attached {
    /// Whether the case of names is kept.
    pub(crate) fn keeps_case(&self) -> bool {
        matches!(self.names.style, Style::Long | Style::Unix)
    }

    /// How full the volume is.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn stat(&self) -> Result<StatFs> {
        self.alive()?;
        let cluster = u64::from(self.layout.cluster_len);
        let free = u64::from(self.table.free_count()?) + u64::from(self.order.pending_clusters());
        let size = u64::from(self.layout.cluster_count) * cluster;
        let free = (free * cluster).min(size);
        Ok(StatFs {
            block_size: self.layout.cluster_len,
            size,
            free,
            available: free,
            nodes: 0,
            nodes_free: 0,
        })
    }

    /// Opens a node.
    ///
    /// # Errors
    /// `IsDir` for writing a directory, `Invalid` for what has no content of
    /// its own, `ReadOnly`.
    pub(crate) fn open_node(&self, id: NodeId, mode: Mode) -> Result<OpenId> {
        let node = self.resolve(id)?;
        match node.kind {
            FileKind::File => {}
            FileKind::Dir if mode == Mode::Read => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if mode != Mode::Read {
            self.writable()?;
        }
        // The body keeps a removal out until the table has the open.
        let body = node.body.read();
        if node.meta.lock().gone && !node.is_open() {
            return Err(Kind::Stale.into());
        }
        let open = self.add_open(node.clone(), mode);
        drop(body);
        Ok(open)
    }

    /// What a symlink holds.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn read_target(&self, node: &Node) -> Result<Vec<u8>> {
        let size = node.meta.lock().size as usize;
        if size > 1 << 16 {
            return Err(Kind::Corrupt.into());
        }
        let mut target = vec![0; size];
        let got = self.read_node(node, 0, &mut target)?;
        target.truncate(got);
        Ok(target)
    }

    /// Changes attributes: the size last, since that can fail for want of space.
    ///
    /// # Errors
    /// As [`FileSystem::setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn set_all(&self, cx: &Ctx<'_>, node: &Arc<Node>, set: &SetAttr) -> Result<()> {
        self.writable()?;
        if node.meta.lock().gone && !node.is_open() {
            return Err(Kind::Stale.into());
        }
        if let Some(size) = set.size {
            self.set_size(cx, node, size)?;
        }
        let rest = SetAttr { size: None, ..*set };
        if rest == SetAttr::default() {
            return Ok(());
        }
        self.set_attrs(cx, node, &rest)
    }

    /// Ends the attachment.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn detach_now(&self) -> Result<()> {
        if self.alive().is_err() {
            return Ok(());
        }
        self.opens.clear();
        self.table.give_all_up();
        let mut result = Ok(());
        if self.writable().is_ok() {
            for node in self.nodes.gone() {
                let freed = self.free_content(&mut node.body.write());
                result = result.and(freed);
            }
        }
        let finished = self.finish();
        result.and(finished)
    }
}

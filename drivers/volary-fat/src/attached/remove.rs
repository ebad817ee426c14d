//! Taking names away, and the nodes that they lead to.

use crate::attached::entries::Located;
use crate::attached::node::{Body, Node};
use crate::attached::operations::Attached;
use crate::base::epoch::{Epoch, Step};
use crate::directory::dir::Dir;
use crate::table::runs::Runs;
use std::sync::Arc;
use volary_core::{Ctx, Kind, Name, NodeId, Result};

impl Attached {
    pub(crate) fn unlink_file(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.store.writable()?;
        let parent = self.tree.dir(dir)?;
        let mut body = self.tree.write_dir(&parent)?;
        let dir = body.dir_mut()?;
        let found = self
            .tree
            .locate_shown(dir, &self.tree.entries.folded(name))?;
        if found.entry.is_dir() {
            return Err(Kind::IsDir.into());
        }
        let node = self.tree.node_of(&found)?;
        let mut content = node.body.write();
        self.take_away(cx, &parent, dir, &found, &node, &mut content)
    }

    /// Removes an entry of a directory, and with it the node that it leads to.
    fn take_away(
        &self,
        cx: &Ctx<'_>,
        parent: &Arc<Node>,
        dir: &mut Dir,
        found: &Located,
        node: &Arc<Node>,
        content: &mut Body,
    ) -> Result<()> {
        content.runs_mut().load_all(&self.store.table)?;
        self.commits.change(|epoch| {
            check_left(content, epoch)?;
            self.tree
                .entries
                .erase(dir, found.span, epoch.stage(dir.first))?;
            self.commits.modified(parent, cx.now);
            self.lose_name(cx, node, content);
            Ok(())
        })?;
        self.tree.left(node, found);
        if !node.is_open() {
            self.tree.nodes.remove(node.id);
        }
        Ok(())
    }

    /// Notes that a node has lost its name; unless it is open, its clusters
    /// are given back. Its chain must be known as a whole.
    pub(crate) fn lose_name(&self, cx: &Ctx<'_>, node: &Node, body: &mut Body) {
        let mut meta = node.meta.lock();
        meta.gone = true;
        meta.dirty = false;
        meta.change = self.commits.next_change();
        meta.ctime = cx.now;
        if let Body::Dir(dir) = body {
            dir.index = None;
        }
        if node.is_open() {
            return;
        }
        let runs = body.runs_mut();
        self.store.give_back(runs.as_slice(), None);
        *runs = Runs::default();
    }

    pub(crate) fn remove_dir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.store.writable()?;
        let _moving = self.moving.lock();
        let parent = self.tree.dir(dir)?;
        let mut body = self.tree.write_dir(&parent)?;
        let dir = body.dir_mut()?;
        let found = self
            .tree
            .locate_shown(dir, &self.tree.entries.folded(name))?;
        if !found.entry.is_dir() {
            return Err(Kind::NotDir.into());
        }
        let node = self.tree.node_of(&found)?;
        let mut content = self.tree.write_dir(&node)?;
        check_empty(content.dir()?)?;
        self.take_away(cx, &parent, dir, &found, &node, &mut content)
    }
}

/// Asks for a commit before a directory goes that something was moved out of in this epoch: the new
/// name may be on its way as late as the loss of the directory.
pub(crate) fn check_left(content: &Body, epoch: &Epoch) -> Step<()> {
    match content {
        Body::Dir(dir) => epoch.check_left(dir.first),
        Body::File(_) => Ok(()),
    }
}

/// Fails unless the directory is empty. Its index must be loaded.
pub(crate) fn check_empty(dir: &Dir) -> Result<()> {
    match &dir.index {
        Some(index) if index.count == 0 => Ok(()),
        _ => Err(Kind::NotEmpty.into()),
    }
}

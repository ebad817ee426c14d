//! The [`FileSystem`] of an export: thin, what it does is elsewhere.

use crate::volume::{Volume, Who};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::{
    Access, Attr, Caps, Cookie, Create, Cred, Ctx, DirBuf, Entry, FileKind, FileSystem, Kind, Lock,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};

/// An attached export. Dropped without a detach, it sends what is written and
/// leaves.
pub(crate) struct Export(Arc<Volume>);

impl Export {
    pub(crate) fn new(volume: Arc<Volume>) -> Self {
        Self(volume)
    }

    /// Ends all opens, has the server have everything for good, and leaves.
    fn leave(&self, who: Who<'_>) -> Result<()> {
        let volume = &self.0;
        let mut first = Ok(());
        for open in volume.opens.ids() {
            first = first.and(self.end_open(who, open));
        }
        first = first.and(volume.commit_all(who));
        if volume.is_detached.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        volume.workers.end();
        volume.unmount();
        volume.peer.end();
        if let Some(peer) = &volume.locks.peer {
            peer.end();
        }
        volume.nodes.clear();
        first
    }

    fn end_open(&self, who: Who<'_>, open: OpenId) -> Result<()> {
        let volume = &self.0;
        let opened = volume.opens.remove(open)?;
        let node = &opened.node;
        volume.unlock_open(who, &opened);
        let written = if opened.mode == Mode::Read {
            Ok(())
        } else {
            volume.commit(who, node)
        };
        let _alone = node.going.write();
        if node.opens.fetch_sub(1, Ordering::SeqCst) > 1 {
            return written;
        }
        volume.forget_content(node);
        written.and(volume.let_go(who, node))
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if !self.0.is_detached.load(Ordering::Acquire) {
            let cred = self.0.whose.clone().unwrap_or_else(Cred::root);
            // There is nobody to tell.
            let _ = self.leave(Who::behind(&cred));
        }
    }
}

impl FileSystem for Export {
    fn caps(&self) -> Caps {
        self.0.info.caps
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn caller(&self, _: &Cred) -> Option<Cred> {
        self.0.whose.clone()
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.0.check()?;
        self.0.room_of(self.0.who(cx))
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.0.check()?;
        self.0.commit_all(self.0.who(cx))
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.0.is_detached.load(Ordering::Acquire) {
            return Ok(());
        }
        self.leave(self.0.who(cx))
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let (who, dir) = (self.0.who(cx), self.0.node(dir)?);
        self.0.find_entry(who, (&dir, name))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let (who, dir) = (self.0.who(cx), self.0.node(dir)?);
        let above = self.0.above(who, &dir)?;
        self.0.entry(who, &above)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.0.check()?;
        let open = self.0.opens.get(dir)?;
        self.0.list(self.0.who(cx), &open, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let dir = self.0.node(dir)?;
        self.0.create_file(self.0.who(cx), (&dir, name), how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let dir = self.0.node(dir)?;
        self.0.make_dir(self.0.who(cx), (&dir, name), set)
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        let (who, dir) = (self.0.who(cx), self.0.node(dir)?);
        self.0.make_node(who, (&dir, name), (kind, rdev), set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let (who, dir) = (self.0.who(cx), self.0.node(dir)?);
        self.0.make_symlink(who, (&dir, name), target, set)
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let (node, dir) = (self.0.node(node)?, self.0.node(dir)?);
        self.0.link_node(self.0.who(cx), &node, (&dir, name))
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = self.0.node(dir)?;
        self.0.remove_file(self.0.who(cx), (&dir, name))
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = self.0.node(dir)?;
        self.0.remove_dir(self.0.who(cx), (&dir, name))
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let (from, to) = (self.0.node(from)?, self.0.node(to)?);
        let who = self.0.who(cx);
        self.0.move_name(who, (&from, name), (&to, new_name), flags)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let node = self.0.node(node)?;
        self.0.attr_of(self.0.who(cx), &node)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let node = self.0.node(node)?;
        self.0.set_attr(self.0.who(cx), &node, set)
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        let node = self.0.node(node)?;
        self.0.rights_of(self.0.who(cx), &node, want)
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let node = self.0.node(node)?;
        self.0.target_of(self.0.who(cx), &node)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let (who, node) = (self.0.who(cx), self.0.node(node)?);
        // From close to open: what others have closed is seen now.
        self.0.settle(&node)?;
        let _stays = node.going.read();
        self.0.fetch_attr(who, &node)?;
        match node.kind {
            FileKind::Dir if mode != Mode::Read => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if mode != Mode::Read {
            self.0.check_writable()?;
        }
        Ok(self.0.opens.add(Arc::clone(&node), mode))
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.check()?;
        let open = self.0.opens.get(open)?;
        open.check_locks()?;
        self.0.read_at(self.0.who(cx), &open, offset, buf)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.0.check()?;
        let open = self.0.opens.get(open)?;
        open.check_locks()?;
        self.0.write_at(self.0.who(cx), &open, offset, data)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.0.check()?;
        let open = self.0.opens.get(open)?;
        open.check_locks()?;
        self.0.commit(self.0.who(cx), &open.node)
    }

    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        self.0.check()?;
        let open = self.0.opens.get(open)?;
        self.0.lock_range(self.0.who(cx), &open, lock)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.check()?;
        self.end_open(self.0.who(cx), open)
    }
}

//! The implementation of `FileSystem`.

use crate::kernel::error::from_errno;
use crate::volume::Host;
use std::sync::Arc;
use volary_core::{
    Attr, Caps, ChangeSink, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Lock,
    Mode, Name, NodeId, OpenId, Prefetch, RenameFlags, Result, SetAttr, StatFs, Watch, Whole,
};

impl FileSystem for Host {
    fn caps(&self) -> Caps {
        self.attachment.caps()
    }

    fn root(&self) -> NodeId {
        self.root.node
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.attachment.check_attached()?;
        self.root.statfs()
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.attachment.check_attached()?;
        if !self.attachment.caps().has(Caps::WRITE) {
            return Ok(());
        }
        match self.ids.opener() {
            Some(root) => rustix::fs::syncfs(root),
            None => rustix::fs::syncfs(self.root.open()?),
        }
        .map_err(from_errno)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        let synced = self.sync(cx);
        if self.end() { synced } else { Ok(()) }
    }

    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        self.watchers.start(sink)
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.names.find(dir, name)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.tree.above(dir)
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.dirs.list(dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.maker.create(cx, dir, name, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.maker.mkdir(cx, dir, name, set)
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
        self.maker.mknod(cx, dir, name, kind, rdev, set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.maker.symlink(cx, dir, name, target, set)
    }

    fn link(&self, _: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.names.link(node, dir, name)
    }

    fn unlink(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.names.remove(dir, name, false)
    }

    fn rmdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.names.remove(dir, name, true)
    }

    fn rename(
        &self,
        _: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.names.rename(from, name, to, new_name, flags)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.attrs.get(node)
    }

    fn setattr(&self, _: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.attrs.change(node, set)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.attrs.target(node)
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.xattrs.get(node, name)
    }

    fn setxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.xattrs.set(node, name, value)
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.xattrs.list(node)
    }

    fn removexattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.xattrs.remove(node, name)
    }

    fn forget(&self, node: NodeId, lookups: u64) {
        self.nodes.forget(node, lookups);
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.files.open(node, mode)
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.content.read(open, offset, buf)
    }

    fn will_read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {
        self.content.advise(open, offset, len);
    }

    /// Looks ahead only for entries, because attributes come with them.
    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if what == Prefetch::Entries {
            self.ahead.look(cx.cancel, nodes);
        }
        true
    }

    fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
        self.batches.read(cx.cancel, files)
    }

    fn write(&self, _: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.content.write(open, offset, data)
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        self.content.sync(open, data_only)
    }

    fn allocate(&self, _: &Ctx<'_>, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        self.content.allocate(open, offset, len, hole)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.content.extents(open, offset, len, out)
    }

    fn lock(&self, _: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        self.files.lock(open, lock)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.files.close(open)
    }
}

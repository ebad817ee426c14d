//! The `FileSystem` impl.

use crate::error::from_errno;
use crate::volume::Host;
use std::sync::Arc;
use volary_core::{
    Attr, Caps, ChangeSink, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Lock,
    Mode, Name, NodeId, OpenId, Prefetch, RenameFlags, Result, SetAttr, StatFs, Watch, Whole,
};

impl FileSystem for Host {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        let (_, root) = self.node(self.root)?;
        let stat = rustix::fs::fstatvfs(&root).map_err(from_errno)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(StatFs {
            block_size: u32::try_from(stat.f_frsize).unwrap_or(u32::MAX),
            size: bytes(stat.f_blocks),
            free: bytes(stat.f_bfree),
            available: bytes(stat.f_bavail),
            nodes: stat.f_files,
            nodes_free: stat.f_ffree,
        })
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.check_attached()?;
        if !self.caps.has(Caps::WRITE) {
            return Ok(());
        }
        match self.ids.opener() {
            Some(root) => rustix::fs::syncfs(root),
            None => rustix::fs::syncfs(self.real_root()?),
        }
        .map_err(from_errno)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        let synced = self.sync(cx);
        if self.end() { synced } else { Ok(()) }
    }

    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        self.start_watch(sink)
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.find(dir, name)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.above(dir)
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.list(dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.create_file(cx, dir, name, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.make_dir(cx, dir, name, set)
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
        self.make_node(cx, dir, name, kind, rdev, set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make_symlink(cx, dir, name, target, set)
    }

    fn link(&self, _: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.link_node(node, dir, name)
    }

    fn unlink(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(dir, name, false)
    }

    fn rmdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(dir, name, true)
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
        self.move_name(from, name, to, new_name, flags)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.attr(node)
    }

    fn setattr(&self, _: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.change(node, set)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.target(node)
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.xattr(node, name)
    }

    fn setxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.set_xattr(node, name, value)
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.xattrs(node)
    }

    fn removexattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.remove_xattr(node, name)
    }

    fn forget(&self, node: NodeId, lookups: u64) {
        self.nodes.forget(node, lookups);
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.open_node(node, mode)
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.read_at(open, offset, buf)
    }

    fn will_read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {
        self.advise(open, offset, len);
    }

    /// Returns attributes come with entries.
    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if what == Prefetch::Entries {
            self.look_ahead(cx.cancel, nodes);
        }
        true
    }

    fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
        self.read_together(cx.cancel, files)
    }

    fn write(&self, _: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.write_at(open, offset, data)
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        self.sync_open(open, data_only)
    }

    fn allocate(&self, _: &Ctx<'_>, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        self.give_room(open, offset, len, hole)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.places(open, offset, len, out)
    }

    fn lock(&self, _: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        self.lock_range(open, lock)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.end_open(open)
    }
}

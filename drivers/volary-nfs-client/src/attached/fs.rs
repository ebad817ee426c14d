//! The [`FileSystem`]: short operations that delegate to the other modules.

use crate::attached::operations::Attached;
use crate::attached::tree::Place;
use volary_core::{
    Access, Attr, Caps, Cookie, Create, Cred, Ctx, DirBuf, Entry, FileKind, FileSystem, Kind, Lock,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};

impl FileSystem for Attached {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn caller(&self, _: &Cred) -> Option<Cred> {
        self.whose.clone()
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.check()?;
        self.files.room.stat(self.who(cx))
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.check()?;
        self.files.behind.commit_all(self.who(cx))
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.detach_once(self.who(cx))
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let (who, dir) = (self.who(cx), self.node(dir)?);
        self.names.tree.find_entry(who, Place { dir: &dir, name })
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let (who, dir) = (self.who(cx), self.node(dir)?);
        let above = self.names.tree.above(who, &dir)?;
        self.attrs.entry(who, &above)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.check()?;
        let open = self.opens.get(dir)?;
        self.dirs.list(self.who(cx), &open, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let dir = self.node(dir)?;
        self.names
            .create_file(self.who(cx), Place { dir: &dir, name }, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let dir = self.node(dir)?;
        self.names
            .make_dir(self.who(cx), Place { dir: &dir, name }, set)
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
        let (who, dir) = (self.who(cx), self.node(dir)?);
        self.names
            .make_node(who, Place { dir: &dir, name }, kind, rdev, set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let (who, dir) = (self.who(cx), self.node(dir)?);
        self.names
            .make_symlink(who, Place { dir: &dir, name }, target, set)
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let (node, dir) = (self.node(node)?, self.node(dir)?);
        self.names
            .link_node(self.who(cx), &node, Place { dir: &dir, name })
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = self.node(dir)?;
        self.names
            .remove_file(self.who(cx), Place { dir: &dir, name })
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = self.node(dir)?;
        self.names
            .remove_dir(self.who(cx), Place { dir: &dir, name })
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
        let (from, to) = (self.node(from)?, self.node(to)?);
        let old = Place { dir: &from, name };
        let new = Place {
            dir: &to,
            name: new_name,
        };
        self.names.move_name(self.who(cx), old, new, flags)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let node = self.node(node)?;
        self.attrs.of(self.who(cx), &node)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let node = self.node(node)?;
        self.attrs.set(self.who(cx), &node, set)
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        let node = self.node(node)?;
        self.attrs.rights_of(self.who(cx), &node, want)
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let node = self.node(node)?;
        self.attrs.target_of(self.who(cx), &node)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let (who, node) = (self.who(cx), self.node(node)?);
        self.open_node(who, &node, mode)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.check()?;
        let open = self.opens.get(open)?;
        open.check_locks()?;
        self.files.read(self.who(cx), &open, offset, buf)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.check()?;
        let open = self.opens.get(open)?;
        open.check_locks()?;
        self.files.write(self.who(cx), &open, offset, data)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.check()?;
        let open = self.opens.get(open)?;
        open.check_locks()?;
        self.files.behind.commit(self.who(cx), &open.node)
    }

    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        self.check()?;
        let open = self.opens.get(open)?;
        let locks = self.locks.as_ref().ok_or(Kind::Unsupported)?;
        locks.lock(self.who(cx), &open, lock)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.check()?;
        self.end_open(self.who(cx), open)
    }
}

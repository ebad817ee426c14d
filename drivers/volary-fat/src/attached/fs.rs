//! The file system: each operation in a few words, the work is elsewhere.

use crate::attached::file::{File, SIZE_MAX};
use crate::attached::node::Node;
use crate::attached::operations::Attached;
use crate::unix::which::Unix;
use crate::volume::time::CHANGE_STEP;
use std::sync::Arc;
use volary_core::{
    Attach, Attr, BlockDevice, Caps, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind,
    FileSystem, Fs, Kind, Mode, Name, NodeId, OpenId, Prefetch, RenameFlags, Result, SetAttr,
    StatFs,
};

/// A FAT volume as a file system.
pub(crate) struct FatFs(Attached);

/// Attaches the volume on a device.
///
/// # Errors
/// As [`Format::attach`](volary_core::Format::attach).
pub(crate) fn attach(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
    Ok(Arc::new(FatFs(Attached::new(dev, how)?)))
}

impl FatFs {
    fn file<'a>(&'a self, node: &'a Arc<Node>) -> File<'a> {
        File::new(&self.0.commits, node)
    }
}

impl FileSystem for FatFs {
    fn caps(&self) -> Caps {
        let mut bits = Caps::STABLE_COOKIES | Caps::EXTENTS;
        if self.0.tree.attrs.unix != Unix::Paper {
            bits |= Caps::STABLE_IDS;
        }
        if self.0.store.takes_changes() {
            bits |= Caps::WRITE;
        }
        if self.0.tree.attrs.unix != Unix::Off {
            bits |= Caps::MODES | Caps::SYMLINKS | Caps::DEVICES;
        }
        if self.0.tree.entries.names.case_sensitive() {
            bits |= Caps::CASE_SENSITIVE;
        }
        if self.0.tree.entries.names.keeps_case() {
            bits |= Caps::CASE_KEEPING;
        }
        Caps {
            bits,
            name_max: self.0.tree.entries.names.name_max(),
            size_max: SIZE_MAX,
            time_step: CHANGE_STEP,
        }
    }

    fn root(&self) -> NodeId {
        self.0.tree.root.id
    }

    fn statfs(&self, _cx: &Ctx<'_>) -> Result<StatFs> {
        self.0.stat()
    }

    fn sync(&self, _cx: &Ctx<'_>) -> Result<()> {
        self.0.store.alive()?;
        self.0.commits.sync_all()
    }

    fn detach(&self, _cx: &Ctx<'_>) -> Result<()> {
        self.0.detach_now()
    }

    fn lookup(&self, _cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        Ok(self.0.tree.attrs.entry(&*self.0.tree.lookup(dir, name)?))
    }

    fn parent(&self, _cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let attrs = &self.0.tree.attrs;
        let node = self.0.tree.dir(dir)?;
        let place = node.meta.lock().place;
        match place {
            Some(place) => Ok(attrs.entry(&*self.0.tree.dir_node(place.dir)?)),
            None => Ok(attrs.entry(&node)),
        }
    }

    fn readdir(&self, _cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.0.store.alive()?;
        let open = self.0.opens.get(dir)?;
        self.0.tree.list_dir(&open.node, from, out)
    }

    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if what == Prefetch::Entries && self.0.store.alive().is_ok() {
            self.0.tree.prefetch_dirs(cx, nodes);
        }
        true
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.0.create_file(cx, dir, name, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.0.make_dir(cx, dir, name, set)
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
        self.0.store.writable()?;
        match kind {
            FileKind::File | FileKind::Dir | FileKind::Symlink => Err(Kind::Invalid.into()),
            _ if self.0.tree.attrs.unix == Unix::Off => Err(Kind::Unsupported.into()),
            _ => self.0.make_special(cx, dir, name, kind, rdev, set),
        }
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.0.store.writable()?;
        if self.0.tree.attrs.unix == Unix::Off {
            return Err(Kind::Unsupported.into());
        }
        self.0.make_symlink(cx, dir, name, target, set)
    }

    fn link(&self, _cx: &Ctx<'_>, _node: NodeId, _dir: NodeId, _name: Name<'_>) -> Result<Entry> {
        self.0.store.writable()?;
        Err(Kind::Unsupported.into())
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.0.unlink_file(cx, dir, name)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.0.remove_dir(cx, dir, name)
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
        self.0.store.writable()?;
        if flags == RenameFlags::SWAP {
            return Err(Kind::Unsupported.into());
        }
        self.0.rename_entry(cx, from, name, to, new_name, flags)
    }

    fn getattr(&self, _cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let node = self.0.tree.resolve(node)?;
        Ok(self.0.tree.attrs.attr(&node))
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let node = self.0.tree.resolve(node)?;
        self.0.set_all(cx, &node, set)?;
        Ok(self.0.tree.attrs.attr(&node))
    }

    fn readlink(&self, _cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let node = self.0.tree.resolve(node)?;
        if node.kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        self.file(&node).read_target()
    }

    fn open(&self, _cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.open_node(node, mode)
    }

    fn read(&self, _cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.store.alive()?;
        let open = self.0.opens.get(open)?;
        self.file(&open.node).read(offset, buf)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let open = self.0.opens.get(open)?;
        self.0.store.writable()?;
        if open.mode == Mode::Read {
            return Err(Kind::Invalid.into());
        }
        self.file(&open.node).write(cx, offset, data)
    }

    fn fsync(&self, _cx: &Ctx<'_>, open: OpenId, _data_only: bool) -> Result<()> {
        self.0.store.alive()?;
        self.0.opens.get(open)?;
        self.0.commits.commit()
    }

    fn allocate(
        &self,
        _cx: &Ctx<'_>,
        open: OpenId,
        _offset: u64,
        _len: u64,
        _hole: bool,
    ) -> Result<()> {
        self.0.opens.get(open)?;
        self.0.store.writable()?;
        Err(Kind::Unsupported.into())
    }

    fn extents(
        &self,
        _cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.0.store.alive()?;
        let open = self.0.opens.get(open)?;
        self.file(&open.node).extents(offset, len, out)
    }

    fn close(&self, _cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close_open(open)
    }
}

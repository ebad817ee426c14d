//! The file system.

use crate::attached::ahead::Ahead;
use crate::attached::operations::Attached;
use crate::directory::dir::Entry as DirEntry;
use crate::disk::ondisk::ROOT_INO;
use crate::inodes::inode::Inode;
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Kind, Mode, Name, NodeId,
    OpenId, Prefetch, Result, StatFs,
};

/// An attached volume.
pub(crate) struct Ext4Fs(pub(crate) Attached);

const CAPS: u32 = Caps::MODES
    | Caps::SYMLINKS
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::XATTRS
    | Caps::HOLES
    | Caps::CASE_SENSITIVE
    | Caps::CASE_KEEPING
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::EXTENTS
    | Caps::ANY_NAME;

const NAME_MAX: u16 = 255;

/// What an inode has of times with nanoseconds: the first 32 bytes after the old ones.
const SIZE_WITH_NANOSECONDS: usize = 160;

impl Ext4Fs {
    fn entry_of(&self, inode: &Inode) -> Result<Entry> {
        let attr = inode.attr(self.0.store.volume())?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Returns the id and the kind of an entry's node. One that is gone or damaged, or whose id is not
    /// wanted, is told by its number.
    ///
    /// # Errors
    /// `Io`.
    fn node_of(
        &self,
        entry: &DirEntry,
        wants_id: bool,
    ) -> Result<(NodeId, FileKind, Option<Inode>)> {
        let by_number = |kind| {
            let id = NodeId::new(entry.ino.into(), 0).ok_or(Kind::Corrupt)?;
            Ok((id, kind, None))
        };
        match entry.kind {
            Some(kind) if !wants_id => by_number(kind),
            told => match self.0.store.inodes().node_of(entry.ino) {
                Ok(inode) => Ok((inode.id(), inode.known_kind()?, Some(inode))),
                Err(e) if e == Kind::Io => Err(e),
                Err(_) => by_number(told.unwrap_or(FileKind::File)),
            },
        }
    }

    /// Puts an entry into the buffer; false if there is no room.
    fn push(&self, entry: &DirEntry, out: &mut DirBuf) -> Result<bool> {
        let store = &self.0.store;
        let (id, kind, inode) = self.node_of(entry, out.wants_ids())?;
        let inode = inode.filter(|_| out.wants_attr());
        let attr = inode.as_ref().map(|inode| inode.attr(store.volume()));
        let is_taken = out.push(Cookie(entry.end), id, kind, &entry.name, attr.transpose()?);
        if let Some(inode) = inode.filter(|_| is_taken && kind == FileKind::File)
            && out.wants_extents(inode.size)
            && inode.check_clear().is_ok()
        {
            out.set_extents(id, |extents| {
                store.content(&inode).extents(0..inode.size, extents)
            });
        }
        Ok(is_taken)
    }
}

impl FileSystem for Ext4Fs {
    fn caps(&self) -> Caps {
        let is_wide = self.0.store.volume().inode_size >= SIZE_WITH_NANOSECONDS;
        Caps {
            bits: CAPS,
            name_max: NAME_MAX,
            size_max: i64::MAX as u64,
            time_step: if is_wide { 1 } else { 1_000_000_000 },
        }
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.0.alive()?;
        Ok(self.0.statfs())
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.detach();
        Ok(())
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.alive()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let dir = self.0.dir(dir)?;
        let store = &self.0.store;
        let found = store.listing(&dir).find(cx, name.as_bytes())?;
        let entry = found.ok_or(Kind::NotFound)?;
        self.entry_of(&store.inodes().node_of(entry.ino)?)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let inode = self.0.load(dir)?;
        if inode.kind() != Some(FileKind::Dir) {
            return Err(Kind::NotDir.into());
        }
        if inode.ino == ROOT_INO {
            return self.entry_of(&inode);
        }
        let store = &self.0.store;
        self.entry_of(&store.inodes().node_of(store.directory(&inode).parent()?)?)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let open = self.0.opened(dir)?;
        open.inode.check_dir()?;
        let listing = self.0.store.listing(&open.inode);
        listing.list(cx, from, |entry| self.push(entry, out))
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.0.load(node)?.attr(self.0.store.volume())
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let inode = self.0.load(node)?;
        self.0.store.content(&inode).target()
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.0.load(node)?;
        let xattrs = self.0.store.xattrs(&inode);
        let all = xattrs.all()?;
        let found = all.iter().find(|one| one.shown().as_deref() == Some(name));
        xattrs.value(found.ok_or(Kind::NoXattr)?)
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let inode = self.0.load(node)?;
        let all = self.0.store.xattrs(&inode).all()?;
        Ok(all.iter().filter_map(|one| one.shown()).collect())
    }

    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if self.0.alive().is_ok() {
            Ahead::new(&self.0.store).prefetch(cx, nodes, what);
        }
        true
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.alive()?;
        if mode != Mode::Read {
            return Err(Kind::ReadOnly.into());
        }
        let inode = self.0.load(node)?;
        inode.check_clear()?;
        Ok(self.0.open(inode))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.read(&*self.0.opened(open)?, offset, buf)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let open = self.0.opened(open)?;
        let content = self.0.store.content(&open.inode);
        content.extents(offset..offset.saturating_add(len), out)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(open)
    }
}

//! The file system.

use crate::attached::Attached;
use crate::dir::Dir;
use crate::inode::Inode;
use crate::ondisk::UFS_MAXNAMLEN;
use crate::volume::Variant;
use crate::xattr;
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Kind, Mode, Name,
    NodeId, OpenId, Result, StatFs,
};

/// An attached volume.
pub(crate) struct FfsFs(pub(crate) Attached);

/// What every volume can do.
const CAPS: u32 = Caps::MODES
    | Caps::SYMLINKS
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::HOLES
    | Caps::CASE_SENSITIVE
    | Caps::CASE_KEEPING
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::EXTENTS
    | Caps::ANY_NAME;

impl FfsFs {
    fn entry_of(&self, inode: &Inode) -> Result<Entry> {
        let attr = inode.attr(&self.0.volume)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// The inode that an entry leads to.
    ///
    /// # Errors
    /// `Corrupt` if it is none, or free; `Io`.
    fn follow(&self, dir: &Inode, ino: u32) -> Result<Inode> {
        self.0.reader()?.inode(ino.into()).map_err(|e| {
            if e != Kind::Stale {
                return e;
            }
            let found = format!("inode {ino} (in directory {})", dir.ino);
            Error::corrupt("d_ino", dir.at, found, "one that is in use")
        })
    }

    fn require_xattrs(&self) -> Result<()> {
        self.0.alive()?;
        match self.0.volume.variant {
            Variant::Ufs2 => Ok(()),
            _ => Err(Kind::Unsupported.into()),
        }
    }
}

impl FileSystem for FfsFs {
    fn caps(&self) -> Caps {
        let (more, time_step) = match self.0.volume.variant {
            Variant::Ufs2 => (Caps::XATTRS, 1),
            Variant::Ufs1 => (0, 1),
            Variant::Bsd43 => (0, 1_000_000_000),
        };
        Caps {
            bits: CAPS | more,
            name_max: UFS_MAXNAMLEN,
            size_max: self.0.volume.size_max(),
            time_step,
        }
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.0.alive()?;
        let volume = &self.0.volume;
        let (free, kept) = volume.free();
        let available = if cx.cred.is_root() {
            free
        } else {
            free.saturating_sub(kept)
        };
        let [_, _, nodes_free, _] = volume.total;
        Ok(StatFs {
            block_size: u32::try_from(volume.fsize).unwrap_or(u32::MAX),
            size: volume.dsize * volume.fsize,
            free,
            available,
            nodes: volume.inodes(),
            nodes_free: nodes_free.min(volume.inodes()),
        })
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.detach();
        Ok(())
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.alive()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let inode = self.0.load(dir)?;
        let mut entries = Dir::new(self.0.reader()?, &inode)?;
        let hint = self.0.hint(inode.ino);
        let (ino, at) = entries.find(name.as_bytes(), hint, &|| cx.check_cancel())?;
        self.0.set_hint(inode.ino, at);
        self.entry_of(&self.follow(&inode, ino)?)
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let inode = self.0.load(dir)?;
        let mut entries = Dir::new(self.0.reader()?, &inode)?;
        let missing = |e: Error| {
            if e != Kind::NotFound {
                return e;
            }
            let found = format!("none (directory {})", inode.ino);
            Error::corrupt(
                "..",
                inode.at,
                found,
                "an entry of the directory that holds it",
            )
        };
        let found = entries.find(b"..", 0, &|| cx.check_cancel());
        let (ino, _) = found.map_err(missing)?;
        let parent = self.follow(&inode, ino)?;
        if parent.kind() != Some(FileKind::Dir) {
            let found = format!("inode {ino}, which is none");
            return Err(Error::corrupt("..", inode.at, found, "a directory"));
        }
        self.entry_of(&parent)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let inode = self.0.opened(dir)?;
        let reader = self.0.reader()?;
        let mut entries = Dir::new(reader, &inode)?;
        let mut at = from.0;
        if at > inode.size || entries.border(at)? != at {
            let words = format!("no entry of the directory begins at {at}");
            return Err(Error::note(Kind::Invalid, words));
        }
        while let Some(entry) = entries.entry(at)? {
            cx.check_cancel()?;
            at = entry.end;
            // Nobody could ask for a name that is none; `.` and `..` are of that kind.
            if !entry.is_used() || Name::new(entry.name).is_err() {
                continue;
            }
            let node = match reader.inode(entry.ino.into()) {
                Ok(node) => node,
                Err(e) if e == Kind::Stale || e == Kind::Corrupt => continue,
                Err(e) => return Err(e),
            };
            let attr = node.attr(&self.0.volume)?;
            let full = !out.push(Cookie(at), attr.node, attr.kind, entry.name, Some(attr));
            if full {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.0.load(node)?.attr(&self.0.volume)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let inode = self.0.load(node)?;
        if inode.kind() != Some(FileKind::Symlink) {
            return Err(Kind::Invalid.into());
        }
        self.0.reader()?.target(&inode)
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.require_xattrs()?;
        let all = xattr::all(&self.0.reader()?, &self.0.load(node)?)?;
        let found = all.into_iter().find(|xattr| xattr.name == name);
        found
            .map(|xattr| xattr.value)
            .ok_or_else(|| Kind::NoXattr.into())
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.require_xattrs()?;
        let all = xattr::all(&self.0.reader()?, &self.0.load(node)?)?;
        Ok(all.into_iter().map(|xattr| xattr.name).collect())
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.alive()?;
        if mode != Mode::Read {
            return Err(Kind::ReadOnly.into());
        }
        let inode = self.0.load(node)?;
        if inode.is_snapshot(&self.0.volume) {
            let words = "the file is a snapshot of the volume";
            return Err(Error::note(Kind::Unsupported, words));
        }
        Ok(self.0.open(inode))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let inode = self.0.opened(open)?;
        match inode.kind() {
            Some(FileKind::File) => self.0.reader()?.read(&inode, offset, buf),
            Some(FileKind::Dir) => Err(Kind::IsDir.into()),
            _ => Ok(0),
        }
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let inode = self.0.opened(open)?;
        match inode.kind() {
            Some(FileKind::File | FileKind::Dir) => self.0.extents(&inode, offset, len, out),
            _ => Ok(()),
        }
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(open)
    }
}

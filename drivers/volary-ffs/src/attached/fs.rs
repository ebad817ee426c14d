//! The file system.

use crate::attached::ahead;
use crate::attached::operations::{Attached, State};
use crate::directory::dir::Dir;
use crate::directory::index;
use crate::directory::listing::{Took, list};
use crate::disk::ondisk::UFS_MAXNAMLEN;
use crate::disk::volume::Variant;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::Open;
use crate::inodes::xattr;
use crate::parameters::tune::Changes;
use crate::tree::names::New;
use crate::tree::rename::rename;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Finding,
    Kind, Mode, Name, NodeId, OpenId, Prefetch, QuotaOf, QuotaReport, RenameFlags, Result, SetAttr,
    SetQuota, StatFs,
};

/// The longest target of a symlink that is created, in bytes.
const SYMLINK_MAX: usize = 4095;

/// The `ioctl` code that sets the percentage kept for root. The argument is a 32-bit little-endian
/// number: `_IOW('V', 1, int)`.
const SET_MINFREE: u32 = 0x4004_5601;

/// The `ioctl` code that sets parameters. The argument is a line of options as `tune` takes them,
/// padded with zeros: `_IOW('V', 2, char[256])`.
const TUNE: u32 = 0x4100_5602;

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
    fn entry_of(state: &State, reader: &Reader<'_>, inode: &Inode) -> Result<Entry> {
        let attr = state.nodes.attr(reader, inode)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Returns the entry for an inode that a change has made.
    fn made(&self, inode: Result<Inode>) -> Result<Entry> {
        let inode = inode?;
        self.0
            .look(|state, reader| Self::entry_of(state, &reader, &inode))
    }

    /// Returns the inode that an entry leads to.
    ///
    /// # Errors
    /// `Corrupt` if there is no such inode, or it is free; `Io`.
    fn follow(state: &State, reader: &Reader<'_>, dir: &Inode, ino: u32) -> Result<Inode> {
        state.nodes.inode(reader, ino.into()).map_err(|e| {
            if e != Kind::Stale {
                return e;
            }
            let found = format!("inode {ino} (in directory {})", dir.ino);
            Error::corrupt("d_ino", dir.at, found, "one that is in use")
        })
    }

    fn check_xattrs(&self) -> Result<()> {
        match self.0.volume.variant {
            Variant::Ufs2 => Ok(()),
            _ => Err(Kind::Unsupported.into()),
        }
    }

    fn xattrs(&self, node: NodeId) -> Result<Vec<xattr::Xattr>> {
        self.0.look(|state, reader| {
            self.check_xattrs()?;
            xattr::all(&reader, &state.nodes.load(&reader, node)?)
        })
    }

    /// Makes a node.
    fn make(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        new: &New<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.made(self.0.change(cx, |tree| tree.make(dir, name, new, set)))
    }

    /// Returns a file's open, for a change of its content.
    fn to_change(&self, open: OpenId) -> Result<Open> {
        let open = self.0.to_change(open)?;
        match open.mode {
            Mode::Read => Err(Kind::Invalid.into()),
            _ => Ok(open),
        }
    }
}

impl FileSystem for FfsFs {
    fn why_read_only(&self) -> Option<String> {
        self.0.why_read_only().map(str::to_owned)
    }

    fn findings(&self) -> Vec<Finding> {
        self.0.warnings()
    }

    fn caps(&self) -> Caps {
        let (more, time_step) = match self.0.volume.variant {
            Variant::Ufs2 => (Caps::XATTRS, 1),
            Variant::Ufs1 => (0, 1),
            Variant::Bsd43 => (0, 1_000_000_000),
        };
        let write = if self.0.takes_changes() {
            Caps::WRITE
        } else {
            0
        };
        Caps {
            bits: CAPS | more | write,
            name_max: UFS_MAXNAMLEN,
            size_max: self.0.volume.size_max(),
            time_step,
        }
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.0.look(|state, _| {
            let volume = &self.0.volume;
            let (mut free, mut kept) = volume.free();
            let [_, _, mut nodes_free, _] = volume.total;
            if let Some(alloc) = &state.alloc {
                free = alloc.free_fragments(volume) * volume.fsize;
                kept = volume.reserve(alloc.policy.minfree) * volume.fsize;
                nodes_free = alloc.free_inodes();
            }
            let is_root = cx.cred.is_root();
            let kept = if is_root { 0 } else { kept };
            Ok(StatFs {
                block_size: u32::try_from(volume.fsize).unwrap_or(u32::MAX),
                size: volume.dsize * volume.fsize,
                free,
                available: free.saturating_sub(kept),
                nodes: volume.inodes(),
                nodes_free: nodes_free.min(volume.inodes()),
            })
        })
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.0.detach(cx)
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.0.sync(cx.now)
    }

    fn quota(&self, _: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        self.0.quota(of, from)
    }

    fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        self.0.set_quota(cx, of, set)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, dir)?;
            let mut entries = Dir::new(reader, &inode)?;
            let go_on = || cx.check_cancel();
            let (ino, _) = index::find(&self.0.indexes, &mut entries, name.as_bytes(), &go_on)?;
            Self::entry_of(state, &reader, &Self::follow(state, &reader, &inode, ino)?)
        })
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, dir)?;
            let mut entries = Dir::new(reader, &inode)?;
            let missing = |e: Error| {
                if e != Kind::NotFound {
                    return e;
                }
                let found = format!("none (directory {})", inode.ino);
                let expected = "an entry of the directory that holds it";
                Error::corrupt("..", inode.at, found, expected)
            };
            let found = entries.find(b"..", 0, &|| cx.check_cancel());
            let (ino, _) = found.map_err(missing)?;
            let parent = Self::follow(state, &reader, &inode, ino)?;
            if parent.kind() != Some(FileKind::Dir) {
                let found = format!("inode {ino}, which is none");
                return Err(Error::corrupt("..", inode.at, found, "a directory"));
            }
            Self::entry_of(state, &reader, &parent)
        })
    }

    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        // Errors are reported by the call that needs the block.
        let _ = self.0.look(|state, reader| {
            ahead::prefetch(&state.nodes, &reader, cx, nodes, what);
            Ok(())
        });
        true
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, state.opened(dir)?.id)?;
            let mut entries = Dir::new(reader, &inode)?;
            list(&mut entries, from, &mut |entry, next| {
                cx.check_cancel()?;
                // Nobody could ask for a name that is not valid. `.` and `..` are among those.
                if !entry.is_used() || Name::new(entry.name).is_err() {
                    return Ok(Took::Passed);
                }
                let number = u64::from(entry.ino);
                if !out.wants_ids()
                    && let (Some(node), Some(kind)) = (NodeId::new(number, 0), entry.kind)
                {
                    let has_room = out.push(next, node, kind, entry.name, None);
                    return Ok(if has_room { Took::Listed } else { Took::Full });
                }
                let node = match state.nodes.inode(&reader, number) {
                    Ok(node) => node,
                    // List it by its number alone: whoever looks it up gets the error.
                    Err(e) if e == Kind::Stale || e == Kind::Corrupt => {
                        let node = NodeId::new(number, 0).ok_or(Kind::Corrupt)?;
                        let kind = entry.kind.unwrap_or(FileKind::File);
                        let has_room = out.push(next, node, kind, entry.name, None);
                        return Ok(if has_room { Took::Listed } else { Took::Full });
                    }
                    Err(e) => return Err(e),
                };
                let attr = state.nodes.attr(&reader, &node)?;
                let has_room = out.push(next, attr.node, attr.kind, entry.name, Some(attr));
                let is_read = attr.kind == FileKind::File && !node.is_snapshot(reader.volume);
                if has_room && is_read && out.wants_extents(attr.size) {
                    out.set_extents(attr.node, |extents| {
                        self.0.extents_of(&reader, &node, 0..attr.size, extents)
                    });
                }
                Ok(if has_room { Took::Listed } else { Took::Full })
            })
        })
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let (inode, open) = self.0.change_and_open(cx, |tree| {
            let found = tree
                .lookup
                .search(&tree.files.edit.load(dir)?, name.as_bytes())?;
            let Some((ino, _)) = found.filter(|_| how != Create::New) else {
                return tree.make(dir, name, &New::File, set);
            };
            let inode = tree.files.edit.inode(ino)?;
            match inode.kind() {
                Some(FileKind::File) => {}
                Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            match how {
                Create::Truncate => tree.setattr(inode.id()?, &SetAttr::size(0)),
                _ => Ok(inode),
            }
        })?;
        Ok((self.made(Ok(inode))?, open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.make(cx, dir, name, &New::Dir, set)
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
        if matches!(kind, FileKind::File | FileKind::Dir | FileKind::Symlink) {
            return Err(Kind::Invalid.into());
        }
        self.make(cx, dir, name, &New::Special(kind, rdev), set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let new = New::Symlink(target);
        self.made(self.0.change(cx, |tree| {
            let inode = tree.files.edit.load(dir)?;
            if tree.lookup.search(&inode, name.as_bytes())?.is_some() {
                return Err(Kind::Exists.into());
            }
            if target.len() > SYMLINK_MAX {
                return Err(Kind::NameTooLong.into());
            }
            tree.make(dir, name, &new, set)
        }))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.made(self.0.change(cx, |tree| tree.link(node, dir, name)))
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.0.change(cx, |tree| tree.unlink(dir, name))
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.0.change(cx, |tree| tree.rmdir(dir, name))
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
        self.0
            .change(cx, |tree| rename(tree, from, name, to, new_name, flags))
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, node)?;
            state.nodes.attr(&reader, &inode)
        })
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let inode = self.0.change(cx, |tree| tree.setattr(node, set));
        Ok(self.made(inode)?.attr)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, node)?;
            if inode.kind() != Some(FileKind::Symlink) {
                return Err(Kind::Invalid.into());
            }
            reader.target(&inode)
        })
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let mut all = self.xattrs(node)?.into_iter();
        let found = all.find(|xattr| xattr.name == xattr::stored_name(name));
        let found = found.ok_or(Kind::NoXattr)?;
        xattr::shown_value(self.0.volume.order, name, found.value)
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.check_xattrs()?;
        let value = xattr::stored_value(self.0.volume.order, name, value)?;
        let name = xattr::stored_name(name);
        self.0
            .change(cx, |tree| tree.set_xattr(node, name, Some(&value)))
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let all = self.xattrs(node)?.into_iter();
        Ok(all.map(|xattr| xattr::shown_name(xattr.name)).collect())
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.check_xattrs()?;
        let name = xattr::stored_name(name);
        self.0.change(cx, |tree| tree.set_xattr(node, name, None))
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.open(cx, node, mode)
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, state.opened(open)?.id)?;
            match inode.kind() {
                Some(FileKind::Dir) => Err(Kind::IsDir.into()),
                _ => reader.read(&inode, offset, buf),
            }
        })
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let open = self.to_change(open)?;
        self.0.change_content(cx, |tree| {
            tree.files.room.is_root &= open.is_roots;
            let inode = tree.files.edit.load(open.id)?;
            tree.charges.quotas().check_not_one(inode.ino)?;
            let offset = offset.unwrap_or(inode.size);
            tree.files.file(inode.ino).write(offset, data)?;
            if !data.is_empty() {
                tree.files.edit.touch_content(inode.ino)?;
            }
            Ok(offset.saturating_add(data.len() as u64))
        })
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.0.look(|state, _| state.opened(open))?;
        self.0.sync(cx.now)
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        if !hole {
            return Err(Kind::Unsupported.into());
        }
        let id = self.to_change(open)?.id;
        let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
        if len == 0 {
            return Err(Kind::Invalid.into());
        }
        if end > self.0.volume.size_max() {
            return Err(Kind::TooBig.into());
        }
        self.0.change_content(cx, |tree| {
            let inode = tree.files.edit.load(id)?;
            tree.charges.quotas().check_not_one(inode.ino)?;
            tree.files.file(inode.ino).punch(offset, len)?;
            Ok(tree.files.edit.touch_content(inode.ino)?)
        })
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.0
            .extents(open, offset..offset.saturating_add(len), out)
    }

    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        self.0.look(|state, _| state.opened(open))?;
        let line = match code {
            SET_MINFREE => {
                let percent = input.try_into().map_err(|_| Kind::Invalid)?;
                format!("minfree={}", u32::from_le_bytes(percent))
            }
            TUNE => {
                let text = input.split(|&byte| byte == 0).next().unwrap_or_default();
                String::from_utf8(text.to_vec()).map_err(|_| Kind::Invalid)?
            }
            _ => return Err(Kind::Unsupported.into()),
        };
        if !cx.cred.is_root() {
            return Err(Kind::NotPermitted.into());
        }
        let changes = Changes::of_line(&line, &self.0.volume)?;
        self.0.tune(&changes, cx.now)?;
        Ok(Vec::new())
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(cx, open)
    }
}

//! The file system.

use crate::attached::operations::{Attached, State};
use crate::disk::blocks::Reader;
use crate::disk::dir;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{ENTRY_LEN, NAME_MAX, ROOT_INO, Variant};
use crate::tree::names::{New, Tree};
use crate::tree::rename::rename;
use std::ops::ControlFlow;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Kind,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};
use volary_ondisk::retry::Step;

/// An attached volume.
pub(crate) struct V7Fs(pub(crate) Attached);

/// Longest target of a symlink that is made, in bytes: System V's paths have 1024 with a NUL.
const SYMLINK_MAX: usize = 1023;

/// What every volume can do.
const CAPS: u32 = Caps::MODES
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::HOLES
    | Caps::CASE_SENSITIVE
    | Caps::CASE_KEEPING
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::EXTENTS
    | Caps::ANY_NAME;

impl V7Fs {
    fn entry_of(state: &State, reader: &Reader<'_>, inode: &Inode) -> Result<Entry> {
        let attr = state.nodes.attr(reader, inode)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Returns what a change has made.
    fn made(&self, inode: Result<Inode>) -> Result<Entry> {
        let inode = inode?;
        self.0
            .look(|state, reader| Self::entry_of(state, &reader, &inode))
    }

    /// Returns the inode that an entry leads to.
    ///
    /// # Errors
    /// `Corrupt` if it is none, or free; `Io`.
    fn follow(state: &State, reader: &Reader<'_>, dir: &Inode, ino: u32) -> Result<Inode> {
        state.nodes.inode(reader, ino.into()).map_err(|e| {
            if e != Kind::Stale {
                return e;
            }
            let found = format!("inode {ino} (in directory {})", dir.ino);
            Error::corrupt("d_ino", dir.at, found, "one that is in use")
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

    /// Lists an entry; false if there is no room for it.
    fn list(
        &self,
        state: &State,
        reader: &Reader<'_>,
        entry: &dir::Entry<'_>,
        out: &mut DirBuf,
    ) -> Result<bool> {
        let next = Cookie(entry.at + ENTRY_LEN as u64);
        let node = match state.nodes.inode(reader, entry.ino.into()) {
            Ok(node) => node,
            // Told by its number: whoever looks at it learns what is wrong with it.
            Err(e) if e == Kind::Stale || e == Kind::Corrupt => {
                let node = NodeId::new(entry.ino.into(), 0).ok_or(Kind::Corrupt)?;
                return Ok(out.push(next, node, FileKind::File, entry.name, None));
            }
            Err(e) => return Err(e),
        };
        let attr = match out.wants_attr() {
            true => Some(state.nodes.attr(reader, &node)?),
            false => None,
        };
        let kind = node.kind().unwrap_or(FileKind::File);
        let has_room = out.push(next, node.id()?, kind, entry.name, attr);
        if has_room && kind == FileKind::File && out.wants_extents(node.size) {
            out.set_extents(node.id()?, |extents| {
                self.0.extents_of(&node, 0..node.size, extents)
            });
        }
        Ok(has_room)
    }
}

/// Returns what a create finds or makes.
fn create(
    tree: &mut Tree<'_>,
    dir: NodeId,
    name: Name<'_>,
    how: Create,
    set: &SetAttr,
) -> Step<Inode> {
    let found = tree.search(&tree.files.edit.load(dir)?, name.as_bytes())?;
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
}

impl FileSystem for V7Fs {
    fn why_read_only(&self) -> Option<String> {
        self.0.why_read_only().map(str::to_owned)
    }

    fn caps(&self) -> Caps {
        let mut bits = CAPS;
        if self.0.volume.variant == Variant::SysV {
            bits |= Caps::SYMLINKS;
        }
        if self.0.takes_changes() {
            bits |= Caps::WRITE;
        }
        Caps {
            bits,
            name_max: u16::try_from(NAME_MAX).unwrap_or(0),
            size_max: self.0.volume.size_max(),
            time_step: 1_000_000_000,
        }
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.0.look(|state, _| {
            let volume = &self.0.volume;
            let (free, nodes_free) = match &state.alloc {
                Some(alloc) => (alloc.free_blocks(), alloc.free_inodes().into()),
                None => {
                    let (free, inodes) = volume.totals();
                    (u64::from(free), u64::from(inodes))
                }
            };
            let data = volume.data();
            let blocks = data.end - data.start;
            let free = free.min(blocks) * volume.bsize;
            Ok(StatFs {
                block_size: u32::try_from(volume.bsize).unwrap_or(u32::MAX),
                size: blocks * volume.bsize,
                free,
                available: free,
                nodes: volume.inodes.into(),
                nodes_free: nodes_free.min(volume.inodes.into()),
            })
        })
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.0.detach(cx)
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.sync()
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, dir)?;
            let found = dir::search(&reader, &inode, name.as_bytes())?;
            let (ino, _) = found.ok_or(Kind::NotFound)?;
            Self::entry_of(state, &reader, &Self::follow(state, &reader, &inode, ino)?)
        })
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, dir)?;
            let missing = || {
                let found = format!("none (directory {})", inode.ino);
                let expected = "an entry of the directory that holds it";
                Error::corrupt("..", inode.at, found, expected)
            };
            let (ino, _) = dir::search(&reader, &inode, b"..")?.ok_or_else(missing)?;
            let ino = if inode.is_root() { ROOT_INO } else { ino };
            let parent = Self::follow(state, &reader, &inode, ino)?;
            if parent.kind() != Some(FileKind::Dir) {
                let found = format!("inode {ino}, which is none");
                return Err(Error::corrupt("..", inode.at, found, "a directory"));
            }
            Self::entry_of(state, &reader, &parent)
        })
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.0.look(|state, reader| {
            let inode = state.nodes.load(&reader, state.opened(dir)?.id)?;
            if !from.0.is_multiple_of(ENTRY_LEN as u64) || from.0 > inode.size {
                let words = format!("no entry of the directory begins at {}", from.0);
                return Err(Error::note(Kind::Invalid, words));
            }
            let mut is_all = true;
            dir::entries(&reader, &inode, from.0, &mut |entry| {
                cx.check_cancel()?;
                // Nobody could ask for a name that is none; `.` and `..` are of that kind.
                if entry.ino == 0 || Name::new(entry.name).is_err() {
                    return Ok(ControlFlow::Continue(()));
                }
                is_all = self.list(state, &reader, &entry, out)?;
                Ok(match is_all {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
            Ok(is_all)
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
        let (inode, open) = self
            .0
            .change_and_open(cx, |tree| create(tree, dir, name, how, set))?;
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
        if self.0.volume.variant == Variant::V7 {
            self.0.check_writable()?;
            let words = "the Seventh Edition has no symlinks";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let new = New::Symlink(target);
        self.made(self.0.change(cx, |tree| {
            let inode = tree.files.edit.load(dir)?;
            if tree.search(&inode, name.as_bytes())?.is_some() {
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

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.open(node, mode)
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
        let open = self.0.to_change(open)?;
        self.0.change_content(cx, |tree| {
            let inode = tree.files.edit.load(open.id)?;
            let offset = offset.unwrap_or(inode.size);
            tree.files.file(inode.ino).write(offset, data)?;
            if !data.is_empty() {
                tree.files.edit.touch_content(inode.ino)?;
            }
            Ok(offset.saturating_add(data.len() as u64))
        })
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.0.look(|state, _| state.opened(open))?;
        self.0.sync()
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
        let id = self.0.to_change(open)?.id;
        let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
        if len == 0 {
            return Err(Kind::Invalid.into());
        }
        if end > self.0.volume.size_max() {
            return Err(Kind::TooBig.into());
        }
        self.0.change_content(cx, |tree| {
            let inode = tree.files.edit.load(id)?;
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

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(cx, open)
    }
}

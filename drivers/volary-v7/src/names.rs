//! Making, removing and renaming names.

use crate::commit::{PARENTS, REMOVALS};
use crate::edit::{Edit, Step, Stop};
use crate::inode::{Inode, dev_t};
use crate::ondisk::{NAME_MAX, ROOT_INO};
use volary_core::{Error, FileKind, Kind, Name, NodeId, RenameFlags, Result, SetAttr};
use volary_ondisk::inodes::Inode as _;
use volary_ondisk::rename::{self, Target, Task};

/// Most links of an inode, a signed number of 16 bits, less one that counts twice while a name
/// moves.
const LINK_MAX: u32 = 32_766;

/// What a new node is.
pub(crate) enum New<'a> {
    File,
    Dir,
    Symlink(&'a [u8]),
    /// A fifo, a socket or a device with its number.
    Special(FileKind, u64),
}

impl New<'_> {
    fn kind(&self) -> FileKind {
        match self {
            Self::File => FileKind::File,
            Self::Dir => FileKind::Dir,
            Self::Symlink(_) => FileKind::Symlink,
            Self::Special(kind, _) => *kind,
        }
    }
}

/// A name that was found.
struct Found {
    dir: Inode,
    node: Inode,
    at: u64,
}

impl Edit<'_> {
    /// Returns the directory of a name that is to be made there.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound` in a directory that was removed; `NameTooLong`.
    fn free_name(&self, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.load(dir)?;
        if self.search(&inode, name.as_bytes())?.is_some() {
            return Err(Kind::Exists.into());
        }
        if self.is_removed(inode.ino) {
            return Err(Kind::NotFound.into());
        }
        if name.as_bytes().len() > NAME_MAX {
            return Err(Kind::NameTooLong.into());
        }
        Ok(inode)
    }

    fn is_removed(&self, ino: u32) -> bool {
        self.nodes.get(ino).is_some_and(|node| node.is_nameless)
    }

    fn find(&self, dir: NodeId, name: Name<'_>) -> Step<Found> {
        let dir = self.load(dir)?;
        let found = self.search(&dir, name.as_bytes())?;
        let (ino, at) = found.ok_or(Kind::NotFound)?;
        let node = self.inode(ino).map_err(|e| {
            if e != Kind::Stale {
                return e;
            }
            let found = format!("inode {ino} (in directory {})", dir.ino);
            Error::corrupt("d_ino", dir.at, found, "one that is in use")
        })?;
        Ok(Found { dir, node, at })
    }

    /// Makes a node with its first name.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound`; `NameTooLong`; `TooManyLinks`; `Unsupported` for an
    /// owner or a device number that the format has no room for; `NoSpace`.
    pub(crate) fn make(
        &mut self,
        dir: NodeId,
        name: Name<'_>,
        new: &New<'_>,
        set: &SetAttr,
    ) -> Step<Inode> {
        let dir = self.free_name(dir, name)?;
        if matches!(new, New::Dir) && dir.links() >= LINK_MAX {
            return Err(Kind::TooManyLinks.into());
        }
        let ino = self.new_inode(new.kind())?.ino;
        self.fill(ino, dir.ino, new)?;
        let own = SetAttr {
            mode: Some(set.mode.unwrap_or(match new.kind() {
                FileKind::Dir => 0o755,
                FileKind::Symlink => 0o777,
                _ => 0o644,
            })),
            ..*set
        };
        self.set_attributes(ino, &own)?;
        self.add_links(ino, if matches!(new, New::Dir) { 2 } else { 1 })?;
        if matches!(new, New::Dir) {
            self.add_links(dir.ino, 1)?;
        }
        self.add_entry(dir.ino, name.as_bytes(), ino)?;
        Ok(self.inode(ino)?)
    }

    /// What a new node holds.
    fn fill(&mut self, ino: u32, parent: u32, new: &New<'_>) -> Step<()> {
        match new {
            New::Dir => {
                self.make_dots(ino, parent)?;
                self.epoch.born.insert(ino);
            }
            New::Symlink(target) => self.write(ino, 0, target)?,
            New::Special(FileKind::CharDevice | FileKind::BlockDevice, rdev) => {
                let number = dev_t(*rdev).ok_or(Kind::Unsupported)?;
                if let Some(address) = self.node(ino)?.mem.addr.first_mut() {
                    *address = number;
                }
            }
            New::File | New::Special(..) => {}
        }
        Ok(())
    }

    fn add_links(&mut self, ino: u32, count: u16) -> Result<()> {
        let now = self.now;
        let node = self.node(ino)?;
        node.mem.nlink = node.mem.nlink.saturating_add(count);
        node.adds = node.adds.saturating_add(count.into());
        node.mem.times[2] = now;
        Ok(())
    }

    /// # Errors
    /// `IsDir`; as [`make`](Self::make).
    pub(crate) fn link(&mut self, node: NodeId, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.load(node)?;
        if inode.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        let dir = self.free_name(dir, name)?;
        if self.is_removed(inode.ino) {
            return Err(Kind::NotFound.into());
        }
        self.check_links(&inode)?;
        self.add_links(inode.ino, 1)?;
        self.add_entry(dir.ino, name.as_bytes(), inode.ino)?;
        Ok(self.inode(inode.ino)?)
    }

    /// # Errors
    /// `TooManyLinks`; [`Stop::Commit`] where there may be too many on the disk for a moment.
    fn check_links(&self, inode: &Inode) -> Step<()> {
        if inode.links() >= LINK_MAX {
            return Err(Kind::TooManyLinks.into());
        }
        let node = self.nodes.get(inode.ino);
        match node.map_or(0, |node| node.links_most()) >= LINK_MAX {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// # Errors
    /// `NotDir`, `NotFound`, `IsDir`.
    pub(crate) fn unlink(&mut self, dir: NodeId, name: Name<'_>) -> Step<()> {
        let found = self.find(dir, name)?;
        if found.node.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        self.remove_entry(found.dir.ino, found.at, None)?;
        self.drop_name(found.dir.ino, &found.node)
    }

    /// # Errors
    /// `NotFound`, `NotDir`, `NotEmpty`.
    pub(crate) fn rmdir(&mut self, dir: NodeId, name: Name<'_>) -> Step<()> {
        let found = self.find(dir, name)?;
        self.check_removable(&found.node)?;
        self.remove_entry(found.dir.ino, found.at, None)?;
        self.drop_name(found.dir.ino, &found.node)
    }

    /// # Errors
    /// `NotDir`, `NotEmpty`, for the root too; [`Stop::Commit`] for a directory whose entries went
    /// elsewhere, or that moved itself: these places must be on the disk before it goes.
    fn check_removable(&self, dir: &Inode) -> Step<()> {
        if !self.is_empty(dir)? || dir.is_root() {
            return Err(Kind::NotEmpty.into());
        }
        match self.epoch.moves.has_left(dir.ino) || self.epoch.moved.contains(&dir.ino) {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// A node has lost a name in a directory.
    fn drop_name(&mut self, dir: u32, inode: &Inode) -> Step<()> {
        let now = self.now;
        let is_dir = inode.kind() == Some(FileKind::Dir);
        let is_open = self.opens.is_open(inode.ino.into());
        let node = self.node(inode.ino)?;
        node.mem.nlink = if is_dir {
            0
        } else {
            node.mem.nlink.saturating_sub(1)
        };
        node.mem.times[2] = now;
        node.is_nameless = node.mem.nlink == 0;
        let is_free = node.is_nameless && !is_open;
        if is_dir {
            self.drop_link(dir)?;
        }
        if is_free {
            self.release(inode.ino)?;
        }
        Ok(())
    }

    fn drop_link(&mut self, dir: u32) -> Result<()> {
        let mem = &mut self.node(dir)?.mem;
        mem.nlink = mem.nlink.saturating_sub(1);
        Ok(())
    }

    /// Frees a node that has neither name nor open, with all that it holds.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn release(&mut self, ino: u32) -> Step<()> {
        if self.inode(ino)?.has_blocks() {
            self.free_blocks(ino, &(0..u64::MAX))?;
        }
        Ok(self.free_inode(ino)?)
    }

    /// # Errors
    /// As [`FileSystem::rename`](volary_core::FileSystem::rename).
    pub(crate) fn rename(
        &mut self,
        (from, name): (NodeId, Name<'_>),
        (to, new_name): (NodeId, Name<'_>),
        flags: RenameFlags,
    ) -> Step<()> {
        if flags == RenameFlags::SWAP {
            return Err(Kind::Unsupported.into());
        }
        let old = self.find(from, name)?;
        let new = match self.find(to, new_name) {
            Ok(new) => Some(new),
            Err(Stop::Error(e)) if e == Kind::NotFound => None,
            Err(e) => return Err(e),
        };
        let target = self.load(to)?;
        if self.is_removed(target.ino) {
            return Err(Kind::NotFound.into());
        }
        let is_dir = old.node.kind() == Some(FileKind::Dir);
        if is_dir && self.is_within(&target, old.node.ino)? {
            return Err(Kind::Invalid.into());
        }
        let found = new.as_ref().map(|new| Target {
            is_same_entry: false,
            is_same_node: new.node.ino == old.node.ino,
            is_dir: new.node.kind() == Some(FileKind::Dir),
        });
        let task = rename::task(flags, is_dir, name == new_name, found)?;
        if task == Task::Nothing {
            return Ok(());
        }
        if self.epoch.born.contains(&target.ino) && from != to {
            // It must be there itself before the old name goes.
            return Err(Stop::Commit);
        }
        if let Some(new) = new.as_ref().filter(|_| is_dir) {
            self.check_removable(&new.node)?;
        } else if is_dir && from != to {
            self.check_links(&target)?;
        }
        self.move_name(&old, new.as_ref(), (&target, new_name))
    }

    fn move_name(
        &mut self,
        old: &Found,
        new: Option<&Found>,
        (target, name): (&Inode, Name<'_>),
    ) -> Step<()> {
        self.check_links(&old.node)?;
        let ino = old.node.ino;
        let is_dir = old.node.kind() == Some(FileKind::Dir);
        let source = self.spot(old.dir.ino, old.at)?.shown();
        // By both names for a moment, on the disk.
        let now = self.now;
        let node = self.node(ino)?;
        node.adds = node.adds.saturating_add(1);
        node.mem.times[2] = now;
        let home = match new {
            Some(new) => {
                let spot = self.redirect(target.ino, new.at, ino, None)?;
                self.touch_content(target.ino)?;
                spot.sector()
            }
            None => {
                self.free_name(target.id()?, name)?;
                self.add_entry(target.ino, name.as_bytes(), ino)?.sector()
            }
        };
        let mut added = vec![home];
        if let Some(new) = new {
            self.drop_name(target.ino, &new.node)?;
        }
        if is_dir && old.dir.ino != target.ino {
            self.add_links(target.ino, 1)?;
            let at = self.dots(&old.node)?;
            let dots = self.spot(ino, at)?.sector();
            // A sector keeps its stage, even if a change is taken back: first this.
            if !self.epoch.moves.note_parent(home, dots) {
                return Err(Stop::Commit);
            }
            self.epoch.moved.insert(ino);
            self.redirect(ino, at, target.ino, Some(PARENTS))?;
            self.drop_link(old.dir.ino)?;
            added.push(dots);
        }
        if let Some(source) = source
            && !self.epoch.moves.note_rename(&added, source, old.dir.ino)
        {
            return Err(Stop::Commit);
        }
        let is_one = source.is_none_or(|source| added.contains(&source));
        let stage = (!is_one).then_some(REMOVALS);
        // A new entry may have been put in front of the old one, but none has moved.
        self.remove_entry(old.dir.ino, old.at, stage)
    }

    /// Returns where `..` of a directory is in it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    fn dots(&self, dir: &Inode) -> Result<u64> {
        let found = self.search(dir, b"..")?;
        let (_, at) = found.ok_or_else(|| {
            let found = format!("none (directory {})", dir.ino);
            let expected = "an entry of the directory that holds it";
            Error::corrupt("..", dir.at, found, expected)
        })?;
        Ok(at)
    }

    /// Returns whether a directory is inode `node`, or lies in it.
    ///
    /// # Errors
    /// `Corrupt` where no way leads to the root; `Io`.
    fn is_within(&self, dir: &Inode, node: u32) -> Result<bool> {
        let mut at = dir.clone();
        rename::lies_in(dir.ino, node, |ino| {
            if ino == ROOT_INO {
                return Ok(None);
            }
            let (parent, _) = self.search(&at, b"..")?.ok_or_else(|| {
                let found = format!("no way to the root (directory {ino})");
                Error::corrupt("..", at.at, found, "the directory that holds it")
            })?;
            at = self.inode(parent)?;
            Ok(Some(parent))
        })
    }
}

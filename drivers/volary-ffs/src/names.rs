//! Making, removing and renaming names.

use crate::commit::{PARENTS, REMOVALS};
use crate::edit::{Edit, Step, Stop};
use crate::inode::Inode;
use crate::ondisk::{UFS_MAXNAMLEN, UFS_ROOTINO};
use crate::store::Instead;
use volary_core::{Error, FileKind, Kind, Name, NodeId, RenameFlags, Result, SetAttr};
use volary_ondisk::inodes::Inode as _;
use volary_ondisk::rename::{self, Target, Task};

/// Most links of an inode: what the BSDs allow, less one that counts twice while a name moves.
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
        if inode.nlink <= 0 {
            return Err(Kind::NotFound.into());
        }
        if name.as_bytes().len() > usize::from(UFS_MAXNAMLEN) {
            return Err(Kind::NameTooLong.into());
        }
        Ok(inode)
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
        let ino = self.new_inode(&dir, new.kind())?.ino;
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
        let leads = (ino, new.kind());
        self.add_entry(dir.ino, name.as_bytes(), leads)?;
        Ok(self.inode(ino)?)
    }

    /// Returns a directory of the root's, made for root alone if it is not there.
    ///
    /// # Errors
    /// `NotDir` if something else has the name; as [`make`](Self::make).
    pub(crate) fn directory_of_root(&mut self, name: &[u8]) -> Step<Inode> {
        let root = self.inode(UFS_ROOTINO)?;
        let Some((ino, _)) = self.search(&root, name)? else {
            let name = Name::new(name).map_err(|_| Kind::Invalid)?;
            return self.make(root.id()?, name, &New::Dir, &SetAttr::mode(0o700));
        };
        let inode = self.inode(ino)?;
        match inode.kind() {
            Some(FileKind::Dir) => Ok(inode),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// What a new node holds.
    fn fill(&mut self, ino: u32, parent: u32, new: &New<'_>) -> Step<()> {
        let volume = self.volume;
        match new {
            New::File => {}
            New::Dir => {
                self.make_dots(ino, parent)?;
                self.epoch.born.insert(ino);
            }
            New::Symlink(target) if (target.len() as u64) < volume.symlink_max => {
                let mem = &mut self.node(ino)?.mem;
                mem.size = target.len() as u64;
                mem.put_instead(volume, &Instead::Target(target));
            }
            New::Symlink(target) => self.write(ino, 0, target)?,
            New::Special(kind, rdev) => {
                if !matches!(kind, FileKind::CharDevice | FileKind::BlockDevice) {
                    return Ok(());
                }
                let number = crate::inode::dev_t(*rdev, volume.is_freebsd);
                let number = number.ok_or(Kind::Unsupported)?;
                let mem = &mut self.node(ino)?.mem;
                mem.put_instead(volume, &Instead::Device(number));
            }
        }
        Ok(())
    }

    fn add_links(&mut self, ino: u32, count: i16) -> Result<()> {
        let now = self.now;
        let node = self.node(ino)?;
        node.mem.nlink = node.mem.nlink.saturating_add(count);
        node.adds = node.adds.saturating_add(count.unsigned_abs().into());
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
        if inode.nlink <= 0 {
            return Err(Kind::NotFound.into());
        }
        self.check_links(&inode)?;
        self.add_links(inode.ino, 1)?;
        let leads = (inode.ino, self.kind_of(inode.ino)?);
        self.add_entry(dir.ino, name.as_bytes(), leads)?;
        Ok(self.inode(inode.ino)?)
    }

    /// # Errors
    /// `TooManyLinks`; [`Stop::Commit`] where there may be too many on the disk for a moment.
    fn check_links(&self, inode: &Inode) -> Step<()> {
        if inode.links() >= LINK_MAX {
            return Err(Kind::TooManyLinks.into());
        }
        let most = self
            .nodes
            .get(inode.ino)
            .map_or(0, |node| node.links_most());
        match most >= LINK_MAX {
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
        self.quotas.check_not_one(found.node.ino)?;
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
    /// `NotDir`, `NotEmpty`; [`Stop::Commit`] for a directory whose entries went elsewhere,
    /// or that moved itself: these places must be on the disk before it goes.
    fn check_removable(&self, dir: &Inode) -> Step<()> {
        if !self.is_empty(dir)? {
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
        node.mem.nlink = if is_dir { 0 } else { node.mem.nlink - 1 };
        node.mem.times[2] = now;
        node.is_nameless = node.mem.nlink <= 0;
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
        let inode = self.inode(ino)?;
        self.free_attributes(&inode)?;
        if inode.has_blocks(self.volume) && !inode.is_snapshot(self.volume) {
            self.free_from(ino, 0)?;
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
        self.quotas.check_not_one(old.node.ino)?;
        if let Some(new) = &new {
            self.quotas.check_not_one(new.node.ino)?;
        }
        let target = self.load(to)?;
        if target.nlink <= 0 {
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
        let kind = self.kind_of(ino)?;
        let is_dir = kind == FileKind::Dir;
        let source = self.source_sector(old.dir.ino, old.at)?;
        // By both names for a moment, on the disk.
        let now = self.now;
        let node = self.node(ino)?;
        node.adds += 1;
        node.mem.times[2] = now;
        let home = match new {
            Some(new) => {
                let sector = self.redirect(target.ino, new.at, (ino, kind), None)?;
                self.touch_content(target.ino)?;
                sector
            }
            None => {
                self.free_name(target.id()?, name)?;
                self.add_entry(target.ino, name.as_bytes(), (ino, kind))?
            }
        };
        let mut added = vec![home];
        if let Some(new) = new {
            self.drop_name(target.ino, &new.node)?;
        }
        if is_dir && old.dir.ino != target.ino {
            self.add_links(target.ino, 1)?;
            let (at, dots) = self.dots(&old.node)?;
            // A sector keeps its stage, even if a change is taken back: first this.
            if !self.epoch.moves.note_parent(home, dots) {
                return Err(Stop::Commit);
            }
            self.epoch.moved.insert(ino);
            self.set_parent(ino, at, target.ino)?;
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

    /// Puts a directory that had no name below another.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn adopt(&mut self, dir: &Inode, parent: u32) -> Step<()> {
        let node = self.node(dir.ino)?;
        node.mem.nlink = dir.nlink.max(2);
        node.is_nameless = false;
        match self.dots(dir) {
            Ok((at, _)) => self.set_parent(dir.ino, at, parent)?,
            // Without `..`: the next round makes it.
            Err(Stop::Error(e)) if e == Kind::Corrupt => {}
            Err(e) => return Err(e),
        }
        self.add_links(parent, 1).map_err(Stop::from)
    }

    /// Returns where `..` of a directory is in it, and in which sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    fn dots(&mut self, dir: &Inode) -> Step<(u64, u64)> {
        let found = self.search(dir, b"..")?;
        let (_, at) = found.ok_or_else(|| {
            let found = format!("none (directory {})", dir.ino);
            let expected = "an entry of the directory that holds it";
            Error::corrupt("..", dir.at, found, expected)
        })?;
        Ok((at, self.sector(dir.ino, at)?))
    }

    /// Makes `..` of a directory, which is at byte `at` of it, lead to another.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    fn set_parent(&mut self, dir: u32, at: u64, parent: u32) -> Step<()> {
        self.redirect(dir, at, (parent, FileKind::Dir), Some(PARENTS))
            .map(drop)
    }

    /// Returns whether a directory is inode `node`, or lies in it: the loop check of rename (section 5.3 of
    /// the paper).
    ///
    /// # Errors
    /// `Corrupt` where no way leads to the root; `Io`.
    fn is_within(&self, dir: &Inode, node: u32) -> Result<bool> {
        let mut at = dir.clone();
        rename::lies_in(dir.ino, node, |ino| {
            if ino == UFS_ROOTINO {
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

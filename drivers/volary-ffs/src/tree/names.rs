//! The tree of names: making, linking and removing names, and operations on their nodes.

use crate::change::edit::{LINK_MAX, Step, Stop};
use crate::change::epoch::PARENTS;
use crate::change::files::Files;
use crate::directory::lookup::Lookup;
use crate::disk::ondisk::{UFS_MAXNAMLEN, UFS_ROOTINO};
use crate::inodes::inode::Inode;
use crate::inodes::node::Opens;
use crate::inodes::store::Instead;
use crate::quota::Charges;
use crate::tree::entries::{Entries, Leads};
use volary_core::{Error, FileKind, Kind, Name, NodeId, Result, SetAttr};
use volary_ondisk::inodes::Inode as _;

/// The kind of a new node.
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
pub(crate) struct Found {
    pub(crate) dir: Inode,
    pub(crate) node: Inode,
    pub(crate) at: u64,
}

/// The tree, as a change sees it. A change is done as a whole or undone.
pub(crate) struct Tree<'a> {
    pub(crate) files: Files<'a>,
    pub(crate) lookup: Lookup<'a>,
    pub(crate) charges: Charges<'a>,
    pub(crate) opens: &'a Opens,
}

impl<'a> Tree<'a> {
    /// Returns the entries of a directory.
    pub(crate) fn entries(&mut self, dir: u32) -> Entries<'_, 'a> {
        Entries {
            lookup: self.lookup,
            file: self.files.file(dir),
        }
    }

    /// Returns the directory for a new name, which must be free there.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound` in a directory that was removed; `NameTooLong`.
    pub(crate) fn free_name(&self, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.files.edit.load(dir)?;
        if self.lookup.search(&inode, name.as_bytes())?.is_some() {
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

    /// Finds a name, and the node that it leads to.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`; `Corrupt` if the inode is free; `Io`.
    pub(crate) fn find(&self, dir: NodeId, name: Name<'_>) -> Step<Found> {
        let dir = self.files.edit.load(dir)?;
        let found = self.lookup.search(&dir, name.as_bytes())?;
        let (ino, at) = found.ok_or(Kind::NotFound)?;
        let node = self.files.edit.inode(ino).map_err(|e| {
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
    /// owner or a device number that the format cannot store; `NoSpace`.
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
        let ino = self.files.new_inode(&dir, new.kind())?;
        self.fill(ino, dir.ino, new)?;
        let own = SetAttr {
            mode: Some(set.mode.unwrap_or(match new.kind() {
                FileKind::Dir => 0o755,
                FileKind::Symlink => 0o777,
                _ => 0o644,
            })),
            ..*set
        };
        self.files.attrs(ino).set(&own)?;
        self.files
            .edit
            .add_links(ino, if matches!(new, New::Dir) { 2 } else { 1 })?;
        if matches!(new, New::Dir) {
            self.files.edit.add_links(dir.ino, 1)?;
        }
        let kind = new.kind();
        self.entries(dir.ino)
            .add(name.as_bytes(), Leads { ino, kind })?;
        Ok(self.files.edit.inode(ino)?)
    }

    /// Returns a directory in the root directory. If it does not exist, it is created for root
    /// alone.
    ///
    /// # Errors
    /// `NotDir` if something else has the name; as [`make`](Self::make).
    pub(crate) fn directory_of_root(&mut self, name: &[u8]) -> Step<Inode> {
        let root = self.files.edit.inode(UFS_ROOTINO)?;
        let Some((ino, _)) = self.lookup.search(&root, name)? else {
            let name = Name::new(name).map_err(|_| Kind::Invalid)?;
            return self.make(root.id()?, name, &New::Dir, &SetAttr::mode(0o700));
        };
        let inode = self.files.edit.inode(ino)?;
        match inode.kind() {
            Some(FileKind::Dir) => Ok(inode),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Writes the initial content of a new node.
    fn fill(&mut self, ino: u32, parent: u32, new: &New<'_>) -> Step<()> {
        let volume = self.lookup.reader.volume;
        match new {
            New::File => {}
            New::Dir => {
                self.entries(ino).make_dots(parent)?;
                self.files.epoch.born.insert(ino);
            }
            New::Symlink(target) if (target.len() as u64) < volume.symlink_max => {
                let mem = &mut self.files.edit.node(ino)?.mem;
                mem.size = target.len() as u64;
                mem.put_instead(volume, &Instead::Target(target));
            }
            New::Symlink(target) => self.files.file(ino).write(0, target)?,
            New::Special(kind, rdev) => {
                if !matches!(kind, FileKind::CharDevice | FileKind::BlockDevice) {
                    return Ok(());
                }
                let number = crate::inodes::inode::dev_t(*rdev, volume.is_freebsd);
                let number = number.ok_or(Kind::Unsupported)?;
                let mem = &mut self.files.edit.node(ino)?.mem;
                mem.put_instead(volume, &Instead::Device(number));
            }
        }
        Ok(())
    }

    /// Links a node under another name.
    ///
    /// # Errors
    /// `IsDir`; as [`make`](Self::make).
    pub(crate) fn link(&mut self, node: NodeId, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.files.edit.load(node)?;
        if inode.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        let dir = self.free_name(dir, name)?;
        if inode.nlink <= 0 {
            return Err(Kind::NotFound.into());
        }
        self.files.edit.check_links(&inode)?;
        self.files.edit.add_links(inode.ino, 1)?;
        let leads = Leads {
            ino: inode.ino,
            kind: self.files.edit.kind_of(inode.ino)?,
        };
        self.entries(dir.ino).add(name.as_bytes(), leads)?;
        Ok(self.files.edit.inode(inode.ino)?)
    }

    /// Removes a name of a node that is not a directory.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `IsDir`.
    pub(crate) fn unlink(&mut self, dir: NodeId, name: Name<'_>) -> Step<()> {
        let found = self.find(dir, name)?;
        if found.node.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        self.charges.quotas().check_not_one(found.node.ino)?;
        self.entries(found.dir.ino).remove(found.at, None)?;
        self.drop_name(found.dir.ino, &found.node)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `NotEmpty`.
    pub(crate) fn rmdir(&mut self, dir: NodeId, name: Name<'_>) -> Step<()> {
        let found = self.find(dir, name)?;
        self.check_removable(&found.node)?;
        self.entries(found.dir.ino).remove(found.at, None)?;
        self.drop_name(found.dir.ino, &found.node)
    }

    /// Checks that a directory can be removed.
    ///
    /// # Errors
    /// `NotDir`, `NotEmpty`; [`Stop::Commit`] if entries of the directory moved elsewhere, or it
    /// was moved itself. The new places must be on the disk before it is removed.
    pub(crate) fn check_removable(&self, dir: &Inode) -> Step<()> {
        if !self.lookup.is_empty(dir)? {
            return Err(Kind::NotEmpty.into());
        }
        match self.files.epoch.moves.has_left(dir.ino) || self.files.epoch.moved.contains(&dir.ino)
        {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// Notes that a node has lost a name in a directory. With the last name the node is freed,
    /// unless it is open.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn drop_name(&mut self, dir: u32, inode: &Inode) -> Step<()> {
        let now = self.files.edit.now;
        let is_dir = inode.kind() == Some(FileKind::Dir);
        let is_open = self.opens.is_open(inode.ino.into());
        let node = self.files.edit.node(inode.ino)?;
        node.mem.nlink = if is_dir { 0 } else { node.mem.nlink - 1 };
        node.mem.times[2] = now;
        node.is_nameless = node.mem.nlink <= 0;
        let is_free = node.is_nameless && !is_open;
        if is_dir {
            self.files.edit.drop_link(dir)?;
        }
        if is_free {
            self.release(inode.ino)?;
        }
        Ok(())
    }

    /// Frees a node that has no name and is not open, with all that it holds.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn release(&mut self, ino: u32) -> Step<()> {
        self.files.release(ino)?;
        self.lookup.indexes.lock().forget(ino);
        Ok(())
    }

    /// Puts a directory that had no name into another.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn adopt(&mut self, dir: &Inode, parent: u32) -> Step<()> {
        let node = self.files.edit.node(dir.ino)?;
        node.mem.nlink = dir.nlink.max(2);
        node.is_nameless = false;
        match self.dots(dir) {
            Ok((at, _)) => self.set_parent(dir.ino, at, parent)?,
            // Without `..`: the next round of the check makes it.
            Err(Stop::Error(e)) if e == Kind::Corrupt => {}
            Err(e) => return Err(e),
        }
        self.files.edit.add_links(parent, 1).map_err(Stop::from)
    }

    /// Returns the place of `..` in a directory, and its sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn dots(&mut self, dir: &Inode) -> Step<(u64, u64)> {
        let found = self.lookup.search(dir, b"..")?;
        let (_, at) = found.ok_or_else(|| {
            let found = format!("none (directory {})", dir.ino);
            let expected = "an entry of the directory that holds it";
            Error::corrupt("..", dir.at, found, expected)
        })?;
        Ok((at, self.entries(dir.ino).sector(at)?))
    }

    /// Makes the entry `..` at byte `at` of a directory lead to another parent.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn set_parent(&mut self, dir: u32, at: u64, parent: u32) -> Step<()> {
        let leads = Leads {
            ino: parent,
            kind: FileKind::Dir,
        };
        self.entries(dir)
            .redirect(at, leads, Some(PARENTS))
            .map(drop)
    }

    /// Changes attributes of a node.
    ///
    /// # Errors
    /// `Unsupported`; `IsDir`, `Invalid` and `TooBig` for a size; `NoSpace`.
    pub(crate) fn setattr(&mut self, id: NodeId, set: &SetAttr) -> Step<Inode> {
        let inode = self.files.edit.load(id)?;
        if let Some(size) = set.size {
            self.charges.quotas().check_not_one(inode.ino)?;
            match inode.kind() {
                Some(FileKind::File) => self.files.file(inode.ino).resize(size)?,
                Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            let now = self.files.edit.now;
            self.files.edit.node(inode.ino)?.mem.times[1] = now;
        }
        self.files
            .attrs(inode.ino)
            .set(&SetAttr { size: None, ..*set })?;
        let now = self.files.edit.now;
        self.files.edit.node(inode.ino)?.mem.times[2] = now;
        Ok(self.files.edit.inode(inode.ino)?)
    }

    /// Sets an extended attribute, or removes it if `value` is `None`.
    ///
    /// # Errors
    /// As [`Xattrs::set`](crate::change::attrs::Xattrs::set).
    pub(crate) fn set_xattr(&mut self, id: NodeId, name: &[u8], value: Option<&[u8]>) -> Step<()> {
        let ino = self.files.edit.load(id)?.ino;
        self.files.xattrs(ino).set(name, value)
    }

    /// Charges the owners of what the change touched. This is the last part of a change.
    ///
    /// # Errors
    /// As [`Charges::charge`].
    pub(crate) fn charge(&mut self) -> Step<()> {
        self.charges.charge(&mut self.files)
    }

    /// Ends the change: what it gave up is freed.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: some of it stays allocated.
    pub(crate) fn done(self) -> Result<()> {
        self.files.done()
    }

    /// Undoes the whole change.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: memory and disk then differ.
    pub(crate) fn take_back(self) -> Result<()> {
        for &ino in self.files.edit.touched() {
            self.lookup.indexes.lock().forget(ino);
        }
        self.files.take_back()?;
        self.charges.take_back();
        Ok(())
    }
}

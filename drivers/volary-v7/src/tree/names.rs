//! The tree of names: what is made, linked and removed in it, and what is done with its nodes.

use crate::change::edit::{LINK_MAX, Step, Stop};
use crate::change::files::Files;
use crate::change::node::Opens;
use crate::disk::dir;
use crate::disk::inode::{Inode, dev_t};
use crate::disk::ondisk::NAME_MAX;
use crate::tree::entries::Entries;
use volary_core::{Error, FileKind, Kind, Name, NodeId, Result, SetAttr};
use volary_ondisk::inodes::Inode as _;

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
pub(crate) struct Found {
    pub(crate) dir: Inode,
    pub(crate) node: Inode,
    pub(crate) at: u64,
}

/// The tree, as a change sees it: a change is done as a whole or taken back.
pub(crate) struct Tree<'a> {
    pub(crate) files: Files<'a>,
    pub(crate) opens: &'a Opens,
}

impl<'a> Tree<'a> {
    /// Returns the entries of a directory.
    pub(crate) fn entries(&mut self, dir: u32) -> Entries<'_, 'a> {
        Entries {
            file: self.files.file(dir),
        }
    }

    /// Searches a directory for a name. Returns the inode that it leads to and where its entry
    /// is.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn search(&self, dir: &Inode, name: &[u8]) -> Result<Option<(u32, u64)>> {
        dir::search(&self.files.edit.reader, dir, name)
    }

    /// Returns the directory of a name that is to be made there.
    ///
    /// # Errors
    /// `NotDir`; `Exists`; `NotFound` in a directory that was removed; `NameTooLong`.
    pub(crate) fn free_name(&self, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.files.edit.load(dir)?;
        if self.search(&inode, name.as_bytes())?.is_some() {
            return Err(Kind::Exists.into());
        }
        if self.files.edit.is_removed(inode.ino) {
            return Err(Kind::NotFound.into());
        }
        if name.as_bytes().len() > NAME_MAX {
            return Err(Kind::NameTooLong.into());
        }
        Ok(inode)
    }

    /// Finds a name, and what it leads to.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`; `Corrupt` for a name of an inode that is free; `Io`.
    pub(crate) fn find(&self, dir: NodeId, name: Name<'_>) -> Step<Found> {
        let dir = self.files.edit.load(dir)?;
        let found = self.search(&dir, name.as_bytes())?;
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
        let ino = self.files.new_inode(new.kind())?;
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
        self.entries(dir.ino).add(name.as_bytes(), ino)?;
        Ok(self.files.edit.inode(ino)?)
    }

    /// What a new node holds.
    fn fill(&mut self, ino: u32, parent: u32, new: &New<'_>) -> Step<()> {
        match new {
            New::Dir => {
                self.entries(ino).make_dots(parent)?;
                self.files.epoch.born.insert(ino);
            }
            New::Symlink(target) => self.files.file(ino).write(0, target)?,
            New::Special(FileKind::CharDevice | FileKind::BlockDevice, rdev) => {
                let number = dev_t(*rdev).ok_or(Kind::Unsupported)?;
                if let Some(address) = self.files.edit.node(ino)?.mem.addr.first_mut() {
                    *address = number;
                }
            }
            New::File | New::Special(..) => {}
        }
        Ok(())
    }

    /// Gives a node another name.
    ///
    /// # Errors
    /// `IsDir`; as [`make`](Self::make).
    pub(crate) fn link(&mut self, node: NodeId, dir: NodeId, name: Name<'_>) -> Step<Inode> {
        let inode = self.files.edit.load(node)?;
        if inode.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        let dir = self.free_name(dir, name)?;
        if self.files.edit.is_removed(inode.ino) {
            return Err(Kind::NotFound.into());
        }
        self.files.edit.check_links(&inode)?;
        self.files.edit.add_links(inode.ino, 1)?;
        self.entries(dir.ino).add(name.as_bytes(), inode.ino)?;
        Ok(self.files.edit.inode(inode.ino)?)
    }

    /// Removes a name of what is no directory.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `IsDir`.
    pub(crate) fn unlink(&mut self, dir: NodeId, name: Name<'_>) -> Step<()> {
        let found = self.find(dir, name)?;
        if found.node.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
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
    /// `NotDir`, `NotEmpty`, for the root too; [`Stop::Commit`] for a directory whose entries went
    /// elsewhere, or that moved itself: these places must be on the disk before it goes.
    pub(crate) fn check_removable(&self, dir: &Inode) -> Step<()> {
        if !dir::is_empty(&self.files.edit.reader, dir)? || dir.is_root() {
            return Err(Kind::NotEmpty.into());
        }
        match self.files.epoch.moves.has_left(dir.ino) || self.files.epoch.moved.contains(&dir.ino)
        {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// Notes that a node has lost a name in a directory; frees it with the last, unless it is open.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn drop_name(&mut self, dir: u32, inode: &Inode) -> Step<()> {
        let now = self.files.edit.now;
        let is_dir = inode.kind() == Some(FileKind::Dir);
        let is_open = self.opens.is_open(inode.ino.into());
        let node = self.files.edit.node(inode.ino)?;
        node.mem.nlink = if is_dir {
            0
        } else {
            node.mem.nlink.saturating_sub(1)
        };
        node.mem.times[2] = now;
        node.is_nameless = node.mem.nlink == 0;
        let is_free = node.is_nameless && !is_open;
        if is_dir {
            self.files.edit.drop_link(dir)?;
        }
        if is_free {
            self.files.release(inode.ino)?;
        }
        Ok(())
    }

    /// Returns where `..` of a directory is in it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn dots(&self, dir: &Inode) -> Result<u64> {
        let found = self.search(dir, b"..")?;
        let (_, at) = found.ok_or_else(|| {
            let found = format!("none (directory {})", dir.ino);
            let expected = "an entry of the directory that holds it";
            Error::corrupt("..", dir.at, found, expected)
        })?;
        Ok(at)
    }

    /// Changes attributes of a node.
    ///
    /// # Errors
    /// `Unsupported`; for a size `IsDir`, `Invalid`, `TooBig`; `NoSpace`.
    pub(crate) fn setattr(&mut self, id: NodeId, set: &SetAttr) -> Step<Inode> {
        let inode = self.files.edit.load(id)?;
        if set.size.is_some() {
            match inode.kind() {
                Some(FileKind::File) => {}
                Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
        }
        let now = self.files.edit.now;
        self.files.attrs(inode.ino).set(set)?;
        let [_, mtime, ctime] = &mut self.files.edit.node(inode.ino)?.mem.times;
        *ctime = now;
        if set.size.is_some() && set.mtime.is_none() {
            *mtime = now;
        }
        Ok(self.files.edit.inode(inode.ino)?)
    }
}

//! The inodes of a volume with their content, as a change sees them.

use crate::change::attrs::{Attrs, Xattrs};
use crate::change::bmap::Map;
use crate::change::edit::{Edit, Step};
use crate::change::epoch::Epoch;
use crate::change::file::File;
use crate::change::room::Room;
use crate::disk::volume::Variant;
use crate::inodes::inode::Inode;
use crate::inodes::node::Node;
use volary_core::{Error, FileKind, Result};

/// Inodes, room, and what the commit must know of both.
pub(crate) struct Files<'a> {
    pub(crate) edit: Edit<'a>,
    pub(crate) room: Room<'a>,
    pub(crate) epoch: &'a mut Epoch,
}

impl<'a> Files<'a> {
    /// Returns the block map of an inode.
    pub(crate) fn map(&mut self, ino: u32) -> Map<'_, 'a> {
        Map {
            edit: &mut self.edit,
            room: &mut self.room,
            ino,
        }
    }

    /// Returns an inode's content.
    pub(crate) fn file(&mut self, ino: u32) -> File<'_, 'a> {
        let map = Map {
            edit: &mut self.edit,
            room: &mut self.room,
            ino,
        };
        File::new(map, self.epoch)
    }

    /// Returns an inode's attributes.
    pub(crate) fn attrs(&mut self, ino: u32) -> Attrs<'_, 'a> {
        Attrs {
            file: self.file(ino),
        }
    }

    /// Returns an inode's extended attributes.
    pub(crate) fn xattrs(&mut self, ino: u32) -> Xattrs<'_, 'a> {
        Xattrs { map: self.map(ino) }
    }

    /// Puts a new inode in the place of a free one.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn new_inode(&mut self, dir: &Inode, kind: FileKind) -> Step<u32> {
        let ino = self.room.take_inode(dir.ino, kind)?;
        let volume = self.edit.reader.volume;
        let edit = &mut self.edit;
        let before = edit.nodes().get(ino);
        let disk = match before {
            Some(node) => node.disk.clone(),
            None => edit.reader.inode_as_it_is(ino.into())?,
        };
        let last = before.map_or(disk.generation, |n| n.mem.generation);
        if disk.mode != 0 {
            let found = format!("{:#o} (inode {ino})", disk.mode);
            return Err(
                Error::corrupt("di_mode", disk.at, found, "0: it is free in the map").into(),
            );
        }
        let mut inode = Inode::free(volume, ino, disk.at, last.wrapping_add(1).max(1));
        inode.mode = u16::try_from(kind.mode_bits()).unwrap_or(0);
        inode.times = [edit.now; 3];
        let has_birth = volume.variant == Variant::Ufs2;
        inode.birth = inode.birth.or(Some(edit.now)).filter(|_| has_birth);
        let mut node = Node::of(disk, 0);
        node.mem = inode;
        edit.put_node(ino, node);
        Ok(ino)
    }

    /// Frees an inode and all that it holds.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn release(&mut self, ino: u32) -> Step<()> {
        let volume = self.edit.reader.volume;
        let inode = self.edit.inode(ino)?;
        self.xattrs(ino).free(&inode)?;
        if inode.has_blocks(volume) && !inode.is_snapshot(volume) {
            self.map(ino).free_from(0)?;
        }
        let node = self.edit.node(ino)?;
        let is_dir = node.mem.kind() == Some(FileKind::Dir);
        node.mem = Inode::free(volume, ino, node.mem.at, node.mem.generation);
        self.room.free_inode(ino, is_dir);
        Ok(())
    }

    /// Frees what the change gave up, now that it is done.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: some of it stays allocated.
    pub(crate) fn done(self) -> Result<()> {
        self.room.done()
    }

    /// Undoes the whole change.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: memory and disk then differ.
    pub(crate) fn take_back(self) -> Result<()> {
        // Writes to an allocated fragment are undone before its allocation.
        self.edit.take_back()?;
        self.room.take_back()
    }
}

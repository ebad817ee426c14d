//! The inodes of a volume with what they hold, as a change sees them.

use crate::change::attrs::Attrs;
use crate::change::bmap::Map;
use crate::change::edit::{Edit, Step};
use crate::change::epoch::Epoch;
use crate::change::file::File;
use crate::change::node::Node;
use crate::change::room::Room;
use crate::disk::inode::Inode;
use volary_core::{Error, FileKind, Result};

/// Inodes, room, and what the commit must know of both.
pub(crate) struct Files<'a> {
    pub(crate) edit: Edit<'a>,
    pub(crate) room: Room<'a>,
    pub(crate) epoch: &'a mut Epoch,
}

impl<'a> Files<'a> {
    /// Returns an inode's content.
    pub(crate) fn file(&mut self, ino: u32) -> File<'_, 'a> {
        File {
            map: Map {
                edit: &mut self.edit,
                room: &mut self.room,
                ino,
            },
            epoch: self.epoch,
        }
    }

    /// Returns an inode's attributes.
    pub(crate) fn attrs(&mut self, ino: u32) -> Attrs<'_, 'a> {
        Attrs {
            file: self.file(ino),
        }
    }

    /// Puts a new inode where a free one is.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn new_inode(&mut self, kind: FileKind) -> Step<u32> {
        let ino = self.room.take_inode()?;
        let edit = &mut self.edit;
        let before = edit.nodes().get(ino);
        let disk = match before {
            Some(node) => node.disk.clone(),
            None => edit.reader.inode_as_it_is(ino.into())?,
        };
        if disk.mode != 0 {
            let found = format!("{:#o} (inode {ino})", disk.mode);
            return Err(
                Error::corrupt("di_mode", disk.at, found, "0: it is listed as free").into(),
            );
        }
        let last = before.map_or(disk.generation, |n| n.mem.generation);
        let mut inode = Inode::free(edit.reader.volume, ino, last.wrapping_add(1));
        inode.mode = u16::try_from(kind.mode_bits()).unwrap_or(0);
        inode.times = [edit.now; 3];
        let mut node = Node::of(disk, 0);
        node.mem = inode;
        edit.put_node(ino, node);
        Ok(ino)
    }

    /// Frees an inode with all that it holds.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn release(&mut self, ino: u32) -> Step<()> {
        if self.edit.inode(ino)?.has_blocks() {
            self.file(ino).map.free_blocks(&(0..u64::MAX))?;
        }
        let volume = self.edit.reader.volume;
        let node = self.edit.node(ino)?;
        node.mem = Inode::free(volume, ino, node.mem.generation);
        self.room.free_inode(ino);
        Ok(())
    }

    /// Lets what was freed go: the change is done.
    ///
    /// # Errors
    /// `Corrupt`: some of it stays taken.
    pub(crate) fn done(self) -> Result<()> {
        self.room.done()
    }

    /// Takes all of it back.
    ///
    /// # Errors
    /// `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        // What was written into a block goes before the block.
        self.edit.take_back()?;
        self.room.take_back()
    }
}

//! What a change takes of the volume's free room, and what it gives back.

use crate::change::alloc::Alloc;
use crate::disk::blocks::Reader;
use volary_core::{Error, Result};

/// What was taken.
enum Taken {
    Block(u32),
    Inode(u32),
}

/// The room of a change: all that is taken can be given back until it is done, and what it frees
/// goes only then.
pub(crate) struct Room<'a> {
    reader: Reader<'a>,
    alloc: &'a mut Alloc,
    taken: Vec<Taken>,
    freed: Vec<u32>,
    freed_inodes: Vec<u32>,
}

impl<'a> Room<'a> {
    /// Returns the room of a change that has taken nothing yet.
    pub(crate) fn new(reader: Reader<'a>, alloc: &'a mut Alloc) -> Self {
        Self {
            reader,
            alloc,
            taken: Vec::new(),
            freed: Vec::new(),
            freed_inodes: Vec::new(),
        }
    }

    /// Returns whether a block was taken since the last commit, so that nothing on the disk leads to it.
    pub(crate) fn is_fresh(&self, block: u32) -> bool {
        self.alloc.is_fresh(block)
    }

    /// Takes a block.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self) -> Result<u32> {
        let block = self.alloc.take(&self.reader)?;
        self.taken.push(Taken::Block(block));
        Ok(block)
    }

    /// Gives a block back when the change is done.
    ///
    /// # Errors
    /// `Corrupt` if there are more than the volume has: files share them.
    pub(crate) fn free(&mut self, block: u32) -> Result<()> {
        self.freed.push(block);
        let volume = self.reader.volume;
        if self.freed.len() as u64 > volume.blocks {
            let found = "more blocks than the volume has";
            let at = volume.bsize;
            return Err(Error::corrupt("di_addr", at, found, "each block once"));
        }
        Ok(())
    }

    /// Takes a free inode.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn take_inode(&mut self) -> Result<u32> {
        let ino = self.alloc.take_inode()?;
        self.taken.push(Taken::Inode(ino));
        Ok(ino)
    }

    /// Gives an inode back when the change is done.
    pub(crate) fn free_inode(&mut self, ino: u32) {
        self.freed_inodes.push(ino);
    }

    /// Lets what was freed go: the change is done.
    ///
    /// # Errors
    /// `Corrupt`: some of it stays taken.
    pub(crate) fn done(self) -> Result<()> {
        let given_back = self.alloc.give_back(self.freed);
        for ino in self.freed_inodes {
            self.alloc.give_inode_back(ino);
        }
        given_back
    }

    /// Gives back what was taken, the last first. What was written there is taken back before.
    ///
    /// # Errors
    /// `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        for taken in self.taken.into_iter().rev() {
            match taken {
                Taken::Block(block) => self.alloc.put_back(&self.reader, block)?,
                Taken::Inode(ino) => self.alloc.put_inode_back(ino),
            }
        }
        Ok(())
    }
}

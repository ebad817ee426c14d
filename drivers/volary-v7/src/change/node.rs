//! Inodes in memory, and opens.

use crate::disk::blocks::Reader;
use crate::disk::inode::Inode;
use volary_core::{Attr, Mode, NodeId, Result};
use volary_ondisk::inodes;

/// An inode in memory.
pub(crate) type Node = inodes::Node<Inode>;

/// The table of inodes in memory.
pub(crate) type Nodes = inodes::Nodes<Inode>;

impl inodes::Inode for Inode {
    fn number(&self) -> u32 {
        self.ino
    }

    fn generation(&self) -> u32 {
        self.generation.into()
    }

    fn is_free(&self) -> bool {
        self.mode == 0
    }

    fn links(&self) -> u32 {
        self.nlink.into()
    }

    /// Returns false: a link count of 0 beside a name is damage here, and the file stays until a check decides.
    fn is_left(&self) -> bool {
        false
    }
}

impl inodes::Inodes for Reader<'_> {
    type Inode = Inode;

    fn inode(&self, number: u64) -> Result<Inode> {
        Reader::inode(self, number)
    }

    fn attr(&self, inode: &Inode) -> Result<Attr> {
        Reader::attr(self, inode)
    }
}

/// The open table, by inode number.
pub(crate) type Opens = volary_ondisk::Opens<Open>;

/// An open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) id: NodeId,
    pub(crate) mode: Mode,
}

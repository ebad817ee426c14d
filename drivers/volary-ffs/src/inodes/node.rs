//! Inodes in memory, and opens.

use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
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
        self.generation
    }

    fn is_free(&self) -> bool {
        self.mode == 0
    }

    fn links(&self) -> u32 {
        u32::try_from(self.nlink).unwrap_or(0)
    }

    fn is_left(&self) -> bool {
        self.mode != 0 && self.nlink <= 0
    }
}

impl inodes::Inodes for Reader<'_> {
    type Inode = Inode;

    fn inode(&self, number: u64) -> Result<Inode> {
        Reader::inode(self, number)
    }

    fn attr(&self, inode: &Inode) -> Result<Attr> {
        inode.attr(self.volume)
    }
}

/// The open table, by inode number.
pub(crate) type Opens = volary_ondisk::Opens<Open>;

/// An open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) id: NodeId,
    pub(crate) mode: Mode,
    /// Whether root opened it. A write-back from the kernel's cache comes as root's. So the limits
    /// that apply to it are those of the user who opened the file.
    pub(crate) is_roots: bool,
}

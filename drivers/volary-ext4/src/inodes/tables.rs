//! Inodes, as the tables of the groups hold them and fast commits changed them.

use crate::disk::blocks::Blocks;
use crate::disk::ondisk::iflag;
use crate::disk::volume::Volume;
use crate::fast::Fast;
use crate::inodes::groups::Groups;
use crate::inodes::inode::Inode;
use volary_core::{Kind, NodeId, Result};

/// The inode tables of a volume.
#[derive(Clone, Copy)]
pub(crate) struct InodeTables<'a> {
    groups: &'a Groups,
    fast: &'a Fast,
}

impl<'a> InodeTables<'a> {
    pub(crate) fn new(groups: &'a Groups, fast: &'a Fast) -> Self {
        Self { groups, fast }
    }

    /// Returns the blocks that the tables are in.
    pub(crate) fn blocks(&self) -> &'a Blocks {
        self.groups.blocks()
    }

    fn volume(&self) -> &'a Volume {
        self.blocks().volume()
    }

    /// Returns an inode, used or not.
    ///
    /// # Errors
    /// As [`Groups::inode_at`]; `Corrupt` for a wrong checksum.
    pub(crate) fn inode(&self, ino: u32) -> Result<Inode> {
        let inode = self.unchecked(ino, self.groups.inode_at(ino)?)?;
        self.verify(&inode)?;
        Ok(inode)
    }

    /// Returns the inode that stands at `at`, whose checksum nobody looked at.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn unchecked(&self, ino: u32, at: u64) -> Result<Inode> {
        let mut bytes = self.blocks().bytes(at, self.volume().inode_size)?;
        let is_fast = self.fast.change_inode(ino, &mut bytes);
        Inode::of(self.volume(), ino, at, bytes, is_fast)
    }

    /// Compares the checksum of an inode. One that was never used, or that a fast commit wrote, has none.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn verify(&self, inode: &Inode) -> Result<()> {
        if !self.volume().verifies() || inode.is_fast || inode.raw.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let (stored, sum) = inode.sums();
        self.blocks().verify("i_checksum", inode.at, stored, sum)
    }

    /// Reads the inode of a node. Reserved inodes, which no path leads to, are `Stale`.
    ///
    /// # Errors
    /// `Stale` for one that is gone, or that was never one; `Corrupt`; `Io`.
    pub(crate) fn node(&self, id: NodeId) -> Result<Inode> {
        let ino = u32::try_from(id.ino.get()).map_err(|_| Kind::Stale)?;
        let inode = self.node_of(ino)?;
        match inode.head.i_generation.get() == id.generation {
            true => Ok(inode),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Reads the inode of a node by its number, whatever its generation.
    ///
    /// # Errors
    /// As [`node`](Self::node).
    pub(crate) fn node_of(&self, ino: u32) -> Result<Inode> {
        if self.volume().is_hidden(ino) {
            return Err(Kind::Stale.into());
        }
        let inode = self.inode(ino)?;
        if inode.head.i_links_count.get() == 0 || inode.has(iflag::EA_INODE) {
            return Err(Kind::Stale.into());
        }
        inode.known_kind()?;
        inode.check_size(self.volume())?;
        Ok(inode)
    }
}

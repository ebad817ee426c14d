//! Where a file's blocks lie: by an extent tree or by indirect blocks, and what fast commits
//! changed of that.

use crate::content::extents::ExtentTree;
use crate::content::indirect::Indirect;
use crate::disk::blocks::Blocks;
use crate::disk::ondisk::iflag;
use crate::disk::run::{Run, Spot};
use crate::fast::Fast;
use crate::inodes::inode::Inode;
use volary_core::{Error, Result};

/// The map of an inode's blocks.
#[derive(Clone, Copy)]
pub(crate) struct BlockMap<'a> {
    blocks: &'a Blocks,
    fast: &'a Fast,
    inode: &'a Inode,
}

impl<'a> BlockMap<'a> {
    pub(crate) fn new(blocks: &'a Blocks, fast: &'a Fast, inode: &'a Inode) -> Self {
        Self {
            blocks,
            fast,
            inode,
        }
    }

    /// Returns the blocks that the map leads to.
    pub(crate) fn blocks(&self) -> &'a Blocks {
        self.blocks
    }

    /// Returns the inode whose map it is.
    pub(crate) fn inode(&self) -> &'a Inode {
        self.inode
    }

    /// Returns the run that begins at this block of the file. Its length is not 0.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn run(&self, first: u64) -> Result<Run> {
        let (blocks, inode) = (self.blocks, self.inode);
        let stored = || match inode.has(iflag::EXTENTS) {
            true => ExtentTree::new(blocks, inode).run(first),
            false => Indirect::new(blocks, inode).run(first),
        };
        let run = self.fast.run(inode.ino, first, stored)?;
        if let Spot::Data(at) | Spot::Unwritten(at) = run.spot {
            blocks.check("block of a file", inode.at, at, run.len)?;
        }
        Ok(run)
    }

    /// Gives `each` the runs of the blocks from `first` to `end`, in order.
    ///
    /// # Errors
    /// `Corrupt`, also for a map that is longer than the volume can hold; `Io`; of `each`.
    pub(crate) fn each_run(
        &self,
        first: u64,
        end: u64,
        mut each: impl FnMut(Run) -> Result<()>,
    ) -> Result<()> {
        // Each run but holes takes a block, and so does what maps a stretch of holes.
        let mut left = self
            .blocks
            .volume()
            .there()
            .saturating_mul(2)
            .saturating_add(16);
        let mut at = first;
        while at < end {
            left = left.checked_sub(1).ok_or_else(|| endless(self.inode))?;
            let run = self.run(at)?;
            let run = run.part(at, end);
            if run.len == 0 {
                return Err(endless(self.inode));
            }
            at = run.end();
            each(run)?;
        }
        Ok(())
    }

    /// Reads bytes from the blocks. Holes and unwritten extents read as zeros.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let block = self.blocks.volume().block;
        let end = offset.saturating_add(buf.len() as u64);
        let mut rest = buf;
        self.each_run(offset / block, end.div_ceil(block), |run| {
            let start = (run.first * block).max(offset);
            let stop = run.end().saturating_mul(block).min(end);
            let len = usize::try_from(stop.saturating_sub(start)).unwrap_or(usize::MAX);
            let (part, more) = std::mem::take(&mut rest)
                .split_at_mut_checked(len)
                .unwrap_or_default();
            rest = more;
            match run.spot {
                Spot::Data(at) => self
                    .blocks
                    .read_once(at * block + (start - run.first * block), part),
                Spot::Unwritten(_) | Spot::Hole => {
                    part.fill(0);
                    Ok(())
                }
            }
        })
    }
}

fn endless(inode: &Inode) -> Error {
    let found = format!("more runs than the volume has blocks (inode {})", inode.ino);
    Error::corrupt("i_block", inode.at, found, "a map that fits the volume")
}

//! Where a file's blocks lie: by an extent tree or by indirect blocks, and what fast commits
//! changed of that.

use crate::inode::Inode;
use crate::ondisk::iflag;
use crate::run::{Run, Spot};
use crate::store::Store;
use volary_core::{Error, Result};

impl Store {
    /// Returns the run that begins at this block of the file. Its length is not 0.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn run(&self, inode: &Inode, first: u64) -> Result<Run> {
        let stored = |store: &Self| match inode.has(iflag::EXTENTS) {
            true => store.run_by_extents(inode, first),
            false => store.run_by_pointers(inode, first),
        };
        let run = self.fast.run(inode.ino, first, || stored(self))?;
        if let Spot::Data(at) | Spot::Unwritten(at) = run.spot {
            self.check_blocks("block of a file", inode.at, at, run.len)?;
        }
        Ok(run)
    }

    /// Gives `each` the runs of the blocks from `first` to `end`, in order.
    ///
    /// # Errors
    /// `Corrupt`, also for a map that is longer than the volume can hold; `Io`; of `each`.
    pub(crate) fn each_run(
        &self,
        inode: &Inode,
        first: u64,
        end: u64,
        mut each: impl FnMut(Run) -> Result<()>,
    ) -> Result<()> {
        // Each run but holes takes a block, and so does what maps a stretch of holes.
        let mut left = self.volume.there().saturating_mul(2).saturating_add(16);
        let mut at = first;
        while at < end {
            left = left.checked_sub(1).ok_or_else(|| endless(inode))?;
            let run = self.run(inode, at)?;
            let run = run.part(at, end);
            if run.len == 0 {
                return Err(endless(inode));
            }
            at = run.end();
            each(run)?;
        }
        Ok(())
    }

    /// Reads bytes of a file from its blocks. Holes and unwritten extents read as zeros.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read_blocks(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<()> {
        let block = self.volume.block;
        let end = offset.saturating_add(buf.len() as u64);
        let mut rest = buf;
        self.each_run(inode, offset / block, end.div_ceil(block), |run| {
            let start = (run.first * block).max(offset);
            let stop = run.end().saturating_mul(block).min(end);
            let len = usize::try_from(stop.saturating_sub(start)).unwrap_or(usize::MAX);
            let (part, more) = std::mem::take(&mut rest)
                .split_at_mut_checked(len)
                .unwrap_or_default();
            rest = more;
            match run.spot {
                Spot::Data(at) => self
                    .cache
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

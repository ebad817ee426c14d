//! The addresses of a file, to be changed.

use crate::change::edit::{Edit, Step};
use crate::change::epoch::POINTERS;
use crate::change::room::Room;
use crate::disk::blocks::Reader;
use crate::disk::inode::Inode;
use crate::disk::ondisk::ADDRESSES;
use crate::disk::volume::Volume;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Kind, Result};

/// What an address of an inode leads to, of which a part is given back.
struct Part {
    block: u32,
    /// The blocks of the file that it leads to.
    span: Range<u64>,
}

/// The block map of a file.
pub(crate) struct Map<'e, 'a> {
    pub(crate) edit: &'e mut Edit<'a>,
    pub(crate) room: &'e mut Room<'a>,
    pub(crate) ino: u32,
}

impl<'a> Map<'_, 'a> {
    pub(crate) fn reader(&self) -> Reader<'a> {
        self.edit.reader
    }

    pub(crate) fn volume(&self) -> &'a Volume {
        self.edit.reader.volume
    }

    /// Returns the file's inode as it is now.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn inode(&self) -> Result<Inode> {
        self.edit.inode(self.ino)
    }

    /// Returns the file's inode, to be changed.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn mem(&mut self) -> Result<&mut Inode> {
        Ok(&mut self.edit.node(self.ino)?.mem)
    }

    /// Returns the stage of an address in an indirect block.
    fn stage(&self, block: u32) -> Stage {
        match self.room.is_fresh(block) {
            true => Stage::DATA,
            false => POINTERS,
        }
    }

    /// Returns a block of a file, and whether it was taken for it just now: what is in it is rubbish then.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn block_for(&mut self, lbn: u64) -> Step<(u32, bool)> {
        let path = self.volume().path(lbn).ok_or(Kind::TooBig)?;
        let inode = self.inode()?;
        let mut block = inode.addr.get(path.slot).copied().unwrap_or(0);
        let mut is_new = block == 0;
        if is_new {
            block = self.take_as(path.depth > 0)?;
            if let Some(address) = self.mem()?.addr.get_mut(path.slot) {
                *address = block;
            }
        }
        for (level, at) in path.at.iter().take(path.depth).enumerate() {
            self.reader().check_address(&inode, block)?;
            let place = u64::from(block) * self.volume().bsize + 4 * *at as u64;
            let next = self.address_at(place)?;
            is_new = next == 0;
            if is_new {
                let taken = self.take_as(level + 1 < path.depth)?;
                let bytes = self.volume().order.bytes32(taken);
                let stage = self.stage(block);
                self.edit.write(place, &bytes, stage)?;
                block = taken;
            } else {
                block = next;
            }
        }
        self.reader().check_address(&inode, block)?;
        Ok((block, is_new))
    }

    /// Takes a block, full of zeros if it is to hold addresses.
    fn take_as(&mut self, holds_addresses: bool) -> Result<u32> {
        let block = self.room.take()?;
        if holds_addresses {
            let zeros = vec![0; self.volume().block_len()];
            let place = u64::from(block) * self.volume().bsize;
            self.reader().cache.write(place, &zeros, Stage::DATA)?;
        }
        Ok(block)
    }

    fn address_at(&self, place: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.reader().cache.read(place, &mut bytes)?;
        Ok(self.volume().order.get32(&bytes, 0))
    }

    /// Gives back the blocks of a file in a range, and the indirect ones that lead to nothing else
    /// by their place.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free_blocks(&mut self, range: &Range<u64>) -> Step<()> {
        let inode = self.inode()?;
        for slot in (0..ADDRESSES).rev() {
            let span = self.volume().span(slot);
            let block = inode.addr.get(slot).copied().unwrap_or(0);
            if block == 0 {
                continue;
            }
            if self.free_in(&inode, &Part { block, span }, range)?
                && let Some(address) = self.mem()?.addr.get_mut(slot)
            {
                *address = 0;
            }
        }
        Ok(())
    }

    /// Gives back the blocks in a range below one address. Returns whether all of them are.
    fn free_in(&mut self, inode: &Inode, part: &Part, range: &Range<u64>) -> Step<bool> {
        let span = &part.span;
        if span.end <= range.start || range.end <= span.start {
            return Ok(false);
        }
        self.reader().check_address(inode, part.block)?;
        let is_whole = range.start <= span.start && span.end <= range.end;
        let len = span.end - span.start;
        if len > 1 {
            let all = self.reader().indirect(inode, part.block)?;
            let each = len / self.volume().pointers();
            for (i, block) in all.into_iter().enumerate().filter(|(_, b)| *b != 0) {
                let start = span.start + each * i as u64;
                let below = Part {
                    block,
                    span: start..start + each,
                };
                if self.free_in(inode, &below, range)? && !is_whole {
                    let place = u64::from(part.block) * self.volume().bsize + 4 * i as u64;
                    let stage = self.stage(part.block);
                    self.edit.write(place, &[0; 4], stage)?;
                }
            }
        }
        if is_whole {
            self.room.free(part.block)?;
        }
        Ok(is_whole)
    }
}

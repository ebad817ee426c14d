//! The block map of a file, open for changes: the pointers in the inode and in indirect blocks.

use crate::change::edit::{Edit, Step};
use crate::change::epoch::POINTERS;
use crate::change::room::Room;
use crate::disk::ondisk::{Stored, UFS_NDADDR};
use crate::disk::volume::{Variant, Volume};
use crate::groups::alloc::{Grower, Run};
use crate::groups::policy::Wish;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use volary_block::Stage;
use volary_core::{Error, Kind, Result};

/// Where a pointer is stored.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// In the inode.
    Direct(usize),
    /// In the indirect block that begins at fragment `block`, at byte `at` of the device.
    Indirect { block: u64, at: u64 },
}

/// Returns the level of indirection of block `lbn`, and its index there. Returns `None` for a
/// direct block, and for a block past the last level.
fn level(nindir: u64, lbn: u64) -> Option<(u32, u64)> {
    let mut past = lbn.checked_sub(UFS_NDADDR)?;
    for level in 1..=3 {
        let span = nindir.saturating_pow(level);
        if past < span {
            return Some((level, past));
        }
        past -= span;
    }
    None
}

/// The block map of a file.
pub(crate) struct Map<'e, 'a> {
    pub(crate) edit: &'e mut Edit<'a>,
    pub(crate) room: &'e mut Room<'a>,
    pub(crate) ino: u32,
}

impl<'a> Map<'_, 'a> {
    /// Borrows the map for a part of the work.
    pub(crate) fn part(&mut self) -> Map<'_, 'a> {
        Map {
            edit: self.edit,
            room: self.room,
            ino: self.ino,
        }
    }

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

    /// Returns the file's inode for a change.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn mem(&mut self) -> Result<&mut Inode> {
        Ok(&mut self.edit.node(self.ino)?.mem)
    }

    /// Returns the bytes that a pointer takes.
    fn width(&self) -> u64 {
        match self.volume().variant {
            Variant::Ufs2 => 8,
            _ => 4,
        }
    }

    fn read_pointer(&self, at: u64) -> Result<u64> {
        let mut bytes = [0; 8];
        let width = usize::try_from(self.width()).unwrap_or(8);
        let bytes = bytes.get_mut(..width).unwrap_or_default();
        self.edit.reader.cache.read(at, bytes)?;
        Ok(match width {
            8 => u64::get(self.volume().order, bytes, 0),
            _ => u32::get(self.volume().order, bytes, 0).into(),
        })
    }

    fn write_pointer(&mut self, block: u64, at: u64, pointer: u64) -> Result<()> {
        let mut bytes = [0; 8];
        let stage = match self.room.is_fresh(block) {
            true => Stage::DATA,
            false => POINTERS,
        };
        if self.width() == 8 {
            pointer.put(self.volume().order, &mut bytes, 0);
            return self.edit.write(at, &bytes, stage);
        }
        let small = u32::try_from(pointer).unwrap_or(0);
        small.put(self.volume().order, &mut bytes, 0);
        self.edit
            .write(at, bytes.first_chunk::<4>().unwrap_or(&[0; 4]), stage)
    }

    /// Returns the block that a pointer leads to, checked; `None` for a hole.
    fn indirect(&self, inode: &Inode, pointer: u64) -> Result<Option<u64>> {
        if pointer == 0 {
            return Ok(None);
        }
        let frag = self.volume().frag;
        let block = self
            .edit
            .reader
            .checked(inode, "di_ib", pointer, frag, false)?;
        Ok(Some(block.first))
    }

    /// Returns where the pointer to block `lbn` is stored. Returns `None` in a hole, unless `make`
    /// asks for the indirect blocks.
    fn slot(&mut self, lbn: u64, make: bool) -> Step<Option<Slot>> {
        let Some((level, index)) = level(self.volume().nindir, lbn) else {
            return match usize::try_from(lbn) {
                Ok(at) if lbn < UFS_NDADDR => Ok(Some(Slot::Direct(at))),
                _ => Err(Kind::TooBig.into()),
            };
        };
        let root = level as usize - 1;
        let inode = self.inode()?;
        let pointer = inode.ib.get(root).copied().unwrap_or(0);
        let mut block = match self.indirect(&inode, pointer)? {
            Some(block) => block,
            None if !make => return Ok(None),
            None => {
                let block = self.new_indirect(lbn)?;
                if let Some(pointer) = self.mem()?.ib.get_mut(root) {
                    *pointer = block;
                }
                block
            }
        };
        for below in (0..level).rev() {
            let span = self.volume().nindir.saturating_pow(below);
            let index = index / span % self.volume().nindir;
            let at = block * self.volume().fsize + index * self.width();
            if below == 0 {
                return Ok(Some(Slot::Indirect { block, at }));
            }
            let pointer = self.read_pointer(at)?;
            block = match self.indirect(&inode, pointer)? {
                Some(next) => next,
                None if !make => return Ok(None),
                None => {
                    let next = self.new_indirect(lbn)?;
                    self.write_pointer(block, at, next)?;
                    next
                }
            };
        }
        Ok(None)
    }

    /// Returns a new indirect block, all holes, placed at the start of the section that it leads
    /// to.
    fn new_indirect(&mut self, lbn: u64) -> Step<u64> {
        let before = self.pointer_before(lbn)?;
        let wish = self.room.wish(self.ino, lbn, before);
        let run = self.room.take(self.volume().frag, wish)?;
        let zeros = vec![0; usize::try_from(self.volume().bsize).unwrap_or(0)];
        let at = run.first * self.volume().fsize;
        self.edit.reader.cache.write(at, &zeros, Stage::DATA)?;
        self.count_more(run.count)?;
        Ok(run.first)
    }

    /// Returns the block before `lbn`, or `None` if that is a hole.
    pub(crate) fn pointer_before(&mut self, lbn: u64) -> Step<Option<u64>> {
        match lbn.checked_sub(1) {
            Some(before) => Ok(Some(self.pointer(before)?).filter(|&first| first != 0)),
            None => Ok(None),
        }
    }

    /// Returns the first fragment of block `lbn`; 0 in a hole.
    ///
    /// # Errors
    /// `TooBig`; `Corrupt`; `Io`.
    pub(crate) fn pointer(&mut self, lbn: u64) -> Step<u64> {
        Ok(match self.slot(lbn, false)? {
            None => 0,
            Some(Slot::Direct(at)) => self.inode()?.db.get(at).copied().unwrap_or(0),
            Some(Slot::Indirect { at, .. }) => self.read_pointer(at)?,
        })
    }

    /// Sets the pointer to block `lbn`, and makes the indirect blocks that this needs.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn set_pointer(&mut self, lbn: u64, pointer: u64) -> Step<()> {
        match self.slot(lbn, pointer != 0)? {
            None => {}
            Some(Slot::Direct(at)) => {
                if let Some(slot) = self.mem()?.db.get_mut(at) {
                    *slot = pointer;
                }
            }
            Some(Slot::Indirect { block, at }) => self.write_pointer(block, at, pointer)?,
        }
        Ok(())
    }

    /// Allocates `count` fragments for block `lbn`. Also returns where the block before it is.
    /// Indirect blocks are made first, so that the block can lie behind them.
    ///
    /// # Errors
    /// As [`set_pointer`](Self::set_pointer).
    pub(crate) fn take_block(&mut self, lbn: u64, count: u64) -> Step<(Run, Option<u64>)> {
        let volume = self.volume();
        let slot = self.slot(lbn, true)?;
        let before = self.pointer_before(lbn)?;
        let mut wish = self.room.wish(self.ino, lbn, before);
        // Place it behind its indirect block, if that was just made for it.
        if let Some(Slot::Indirect { block, at }) = slot
            && at == block * volume.fsize
            && self.room.is_fresh(block)
        {
            wish = Wish::at(volume, self.ino, block + volume.frag);
        }
        let grower = self.grower(lbn);
        if let Some(grower) = &grower {
            wish = self.room.steer(grower, before, wish)?;
        }
        let run = self.room.take(count, wish)?;
        match slot {
            Some(Slot::Indirect { block, at }) => self.write_pointer(block, at, run.first)?,
            _ => self.set_pointer(lbn, run.first)?,
        }
        self.count_more(count)?;
        if let Some(grower) = &grower {
            self.room.keep_ahead(grower, run)?;
        }
        Ok((run, before))
    }

    /// Adds fragments to the inode's count of sectors (`di_blocks`).
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn count_more(&mut self, fragments: u64) -> Result<()> {
        let sectors = fragments * (self.volume().fsize / 512);
        let mem = self.mem()?;
        mem.blocks = mem.blocks.saturating_add(sectors);
        Ok(())
    }

    /// Returns the file that grows by block `lbn`, if room is reserved for it.
    pub(crate) fn grower(&self, lbn: u64) -> Option<Grower> {
        let node = self.edit.nodes().get(self.ino);
        self.room.grower(node, lbn, self.edit.now)
    }

    /// Frees fragments of the inode.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free_of(&mut self, run: Run) -> Result<()> {
        let sectors = run.count * (self.volume().fsize / 512);
        let mem = self.mem()?;
        mem.blocks = mem.blocks.saturating_sub(sectors);
        self.room.free(run);
        Ok(())
    }

    /// Frees all whole blocks from `keep` on, and the indirect blocks that led to them. The length
    /// of the last block follows from the inode's size.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free_from(&mut self, keep: u64) -> Step<()> {
        let volume = self.volume();
        let inode = self.inode()?;
        for (&first, lbn) in inode.db.iter().zip(0..) {
            if lbn < keep || first == 0 {
                continue;
            }
            let count = inode.block_len(volume, lbn).max(volume.fsize) / volume.fsize;
            let block = self
                .edit
                .reader
                .checked(&inode, "di_db", first, count, true)?;
            self.free_of(Run {
                first: block.first,
                count,
            })?;
            self.set_pointer(lbn, 0)?;
        }
        let mut left = volume.size / volume.frag + 1;
        let mut first = UFS_NDADDR;
        for (at, &pointer) in inode.ib.iter().enumerate() {
            let level = at as u32 + 1;
            let span = volume.nindir.saturating_pow(level);
            if let Some(block) = self.indirect(&inode, pointer)?
                && first + span > keep
                && self.free_below(&inode, block, level, keep.saturating_sub(first), &mut left)?
                && let Some(slot) = self.mem()?.ib.get_mut(at)
            {
                *slot = 0;
            }
            first += span;
        }
        Ok(())
    }

    /// Frees what an indirect block leads to from `keep` on. If nothing is kept, frees the block
    /// itself and returns true.
    fn free_below(
        &mut self,
        inode: &Inode,
        block: u64,
        level: u32,
        keep: u64,
        left: &mut u64,
    ) -> Step<bool> {
        let volume = self.volume();
        let each = volume.nindir.saturating_pow(level - 1);
        for index in keep / each..volume.nindir {
            let at = block * volume.fsize + index * self.width();
            let pointer = self.read_pointer(at)?;
            let Some(below) = self.indirect(inode, pointer)? else {
                continue;
            };
            let more = left.checked_sub(1).ok_or_else(|| {
                let found = format!("more blocks than the volume (inode {})", inode.ino);
                Error::corrupt("di_ib", inode.at, found, "each block once")
            })?;
            *left = more;
            let goes = match level {
                1 => {
                    let (first, count) = (below, volume.frag);
                    self.free_of(Run { first, count })?;
                    true
                }
                _ => {
                    let kept = keep.saturating_sub(index * each);
                    self.free_below(inode, below, level - 1, kept, left)?
                }
            };
            // A block that is freed as a whole may keep its pointers.
            if goes && keep > 0 {
                self.write_pointer(block, at, 0)?;
            }
        }
        if keep == 0 {
            let (first, count) = (block, volume.frag);
            self.free_of(Run { first, count })?;
        }
        Ok(keep == 0)
    }
}

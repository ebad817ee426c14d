//! Visits all pointers of an inode, one by one. A wrong pointer does not end the sweep, because a
//! check needs the rest too.

use crate::disk::ondisk::{Stored, UFS_NDADDR};
use crate::disk::volume::Variant;
use crate::inodes::blocks::{Block, Reader};
use crate::inodes::inode::Inode;
use std::ops::Range;
use volary_core::Result;

/// Bytes that are read at a time where a larger read fails.
const SECTOR: usize = 512;

/// Where a pointer is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// In `di_db`.
    Direct(usize),
    /// In `di_ib`.
    Indirect(usize),
    /// In `di_extb`.
    Attributes(usize),
    /// In an indirect block, at this byte of the device.
    At(u64),
}

/// A pointer that is not zero.
pub(crate) struct Pointer {
    pub(crate) slot: Slot,
    /// The blocks of the file that it leads to. The range is empty for extended attributes.
    pub(crate) blocks: Range<u64>,
    /// The fragment that it names.
    pub(crate) first: u64,
    /// The block that it leads to.
    ///
    /// # Errors
    /// `Corrupt` if it is out of range.
    pub(crate) block: Result<Block>,
    /// Whether it leads to an indirect block with unreadable sectors.
    pub(crate) is_unreadable: bool,
    /// Whether it leads to an indirect block whose pointers are all out of range.
    pub(crate) is_junk: bool,
}

/// Whether a sweep goes on below an indirect block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    Go,
    Skip,
}

/// Returns the bytes that a pointer takes.
pub(crate) fn width(variant: Variant) -> usize {
    match variant {
        Variant::Ufs2 => 8,
        _ => 4,
    }
}

/// Calls `each` for every pointer of an inode up to its end, those of extended attributes first.
/// The pointers in an indirect block come after the pointer to it, if `each` returns `Go`. Indirect
/// blocks can form a loop, so `each` must skip those that it has seen.
///
/// # Errors
/// Those of `each`.
pub(crate) fn sweep(
    reader: &Reader<'_>,
    inode: &Inode,
    each: &mut dyn FnMut(&Pointer) -> Result<Below>,
) -> Result<()> {
    let volume = reader.volume;
    let count = inode.size.div_ceil(volume.bsize);
    let mut sweep = Sweep {
        reader,
        inode,
        count,
        each,
    };
    let mut ext = u64::from(inode.extsize);
    for (at, &first) in inode.extb.iter().enumerate() {
        let fragments = ext.min(volume.bsize).div_ceil(volume.fsize);
        if fragments > 0 {
            sweep.data(Slot::Attributes(at), "di_extb", first, fragments, 0..0)?;
        }
        ext -= ext.min(volume.bsize);
    }
    if !inode.has_blocks(volume) {
        return Ok(());
    }
    for (at, (&first, lbn)) in inode.db.iter().zip(0..count).enumerate() {
        let fragments = inode.block_len(volume, lbn) / volume.fsize;
        sweep.data(Slot::Direct(at), "di_db", first, fragments, lbn..lbn + 1)?;
    }
    let mut lbn = UFS_NDADDR;
    for (at, (&first, level)) in inode.ib.iter().zip(1..).enumerate() {
        if lbn < count {
            sweep.indirect(Slot::Indirect(at), first, level, lbn)?;
        }
        lbn = lbn.saturating_add(volume.nindir.saturating_pow(level));
    }
    Ok(())
}

struct Sweep<'a> {
    reader: &'a Reader<'a>,
    inode: &'a Inode,
    /// The number of blocks in the file.
    count: u64,
    each: &'a mut dyn FnMut(&Pointer) -> Result<Below>,
}

impl Sweep<'_> {
    fn data(
        &mut self,
        slot: Slot,
        what: &'static str,
        first: u64,
        fragments: u64,
        blocks: Range<u64>,
    ) -> Result<()> {
        if first == 0 {
            return Ok(());
        }
        let block = self
            .reader
            .checked(self.inode, what, first, fragments, true);
        let pointer = Pointer {
            slot,
            blocks,
            first,
            block,
            is_unreadable: false,
            is_junk: false,
        };
        (self.each)(&pointer).map(drop)
    }

    fn indirect(&mut self, slot: Slot, first: u64, level: u32, lbn: u64) -> Result<()> {
        let volume = self.reader.volume;
        if first == 0 {
            return Ok(());
        }
        let each_is = volume.nindir.saturating_pow(level - 1);
        let wanted = (self.count - lbn).div_ceil(each_is).min(volume.nindir);
        let block = self
            .reader
            .checked(self.inode, "di_ib", first, volume.frag, false);
        let (pointers, is_unreadable) = match &block {
            Ok(block) => self.pointers(block, wanted),
            Err(_) => (Vec::new(), false),
        };
        let can_be = |&pointer: &u64| {
            let checked = self
                .reader
                .checked(self.inode, "di_ib", pointer, volume.frag, true);
            checked.is_ok()
        };
        let mut used = pointers.iter().filter(|&&pointer| pointer != 0).peekable();
        let is_junk = used.peek().is_some() && !used.any(can_be);
        let start = first.saturating_mul(volume.fsize);
        let pointer = Pointer {
            slot,
            blocks: lbn..lbn.saturating_add(wanted.saturating_mul(each_is)),
            first,
            block,
            is_unreadable,
            is_junk,
        };
        if (self.each)(&pointer)? == Below::Skip {
            return Ok(());
        }
        let width = width(volume.variant) as u64;
        for (pointer, index) in pointers.into_iter().zip(0..) {
            let slot = Slot::At(start.saturating_add(index * width));
            let lbn = lbn + index * each_is;
            match level {
                1 => self.data(slot, "di_ib", pointer, volume.frag, lbn..lbn + 1)?,
                _ => self.indirect(slot, pointer, level - 1, lbn)?,
            }
        }
        Ok(())
    }

    /// Returns the first pointers of an indirect block, with zeros for those that cannot be read.
    /// Also returns whether there were unreadable ones.
    fn pointers(&self, block: &Block, count: u64) -> (Vec<u64>, bool) {
        let volume = self.reader.volume;
        let width = width(volume.variant);
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0) * width];
        let is_whole = read_by_sectors(self.reader, block.first * volume.fsize, &mut bytes);
        let pointer = |bytes: &[u8]| match width {
            8 => u64::get(volume.order, bytes, 0),
            _ => u32::get(volume.order, bytes, 0).into(),
        };
        (bytes.chunks_exact(width).map(pointer).collect(), !is_whole)
    }
}

/// Reads from a sector's start on, with zeros for sectors that cannot be read. Returns whether all
/// could be read.
pub(crate) fn read_by_sectors(reader: &Reader<'_>, at: u64, bytes: &mut [u8]) -> bool {
    if reader.cache.read(at, bytes).is_ok() {
        return true;
    }
    let mut is_whole = true;
    for (sector, at) in bytes.chunks_mut(SECTOR).zip((at..).step_by(SECTOR)) {
        if reader.cache.read(at, sector).is_err() {
            sector.fill(0);
            is_whole = false;
        }
    }
    is_whole
}

//! Where the bytes of a file lie: twelve direct blocks and three levels of indirect ones.

use crate::disk::ondisk::{CG_INITEDIBLK_AT, CG_MAGIC, CG_MAGIC_AT, CgHeader, Stored, UFS_NDADDR};
use crate::disk::volume::{Variant, Volume};
use crate::inodes::inode::Inode;
use std::ops::Range;
use volary_block::Cache;
use volary_core::{Error, FileKind, Kind, Result};

/// The longest run of a file's bytes that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it is in the file.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Where it is on the device, or `None` for a hole.
    pub(crate) place: Option<u64>,
}

/// A block that a pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its first fragment.
    pub(crate) first: u64,
    pub(crate) fragments: u64,
    /// Whether it holds data, rather than pointers.
    pub(crate) is_data: bool,
}

/// Pointers of an indirect block that are read at a time.
const POINTERS: u64 = 512;

/// The longest target of a symlink, in bytes.
const TARGET_MAX: u64 = 65_536;

/// Reads a volume.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) volume: &'a Volume,
}

impl Reader<'_> {
    /// Returns an inode that is in use.
    ///
    /// # Errors
    /// `Stale` if it does not exist, or is free; `Corrupt`; `Io`.
    pub(crate) fn inode(&self, ino: u64) -> Result<Inode> {
        let inode = self.inode_as_it_is(ino)?;
        if inode.mode == 0 || !self.is_initialised(ino)? {
            return Err(Kind::Stale.into());
        }
        inode.check(self.volume)
    }

    /// Returns whether an inode has been initialised. UFS2 initialises inodes when they are first
    /// needed. The group's count of them is used only if it is plausible.
    fn is_initialised(&self, ino: u64) -> Result<bool> {
        if self.volume.variant != Variant::Ufs2 {
            return Ok(true);
        }
        let order = self.volume.order;
        let mut bytes = [0; CgHeader::SIZE];
        self.cache
            .read(self.volume.head_at(ino / self.volume.ipg), &mut bytes)?;
        let written = u64::from(u32::get(order, &bytes, CG_INITEDIBLK_AT));
        let magic = u32::get(order, &bytes, CG_MAGIC_AT);
        let counts = magic == CG_MAGIC && written <= self.volume.ipg;
        Ok(!counts || ino % self.volume.ipg < written)
    }

    /// Returns an inode without checking it.
    ///
    /// # Errors
    /// `Stale` if it does not exist; `Io`.
    pub(crate) fn inode_as_it_is(&self, ino: u64) -> Result<Inode> {
        let stale = || Error::from(Kind::Stale);
        let at = self.volume.inode_at(ino).ok_or_else(stale)?;
        let ino = u32::try_from(ino).map_err(|_| stale())?;
        let len = usize::try_from(self.volume.inode_size()).unwrap_or_default();
        let mut bytes = vec![0; len];
        self.cache.read(at, &mut bytes)?;
        Ok(Inode::parse(self.volume, ino, at, &bytes))
    }

    /// Calls `each` for the runs that make up a range of a file. The range is cut at the file's
    /// end.
    ///
    /// # Errors
    /// `Corrupt` for a pointer to outside of the volume, or for more blocks than the volume has;
    /// `Io`; those of `each`.
    pub(crate) fn runs(
        &self,
        inode: &Inode,
        offset: u64,
        len: u64,
        each: &mut dyn FnMut(Run) -> Result<()>,
    ) -> Result<()> {
        self.some_runs(inode, offset..offset.saturating_add(len), u64::MAX, each)
            .map(drop)
    }

    /// Calls `each` as [`runs`](Self::runs) does, but stops after `pointers` pointers. Returns how
    /// far into the file it came.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub(crate) fn some_runs(
        &self,
        inode: &Inode,
        bytes: Range<u64>,
        pointers: u64,
        each: &mut dyn FnMut(Run) -> Result<()>,
    ) -> Result<u64> {
        let (start, end) = (bytes.start, bytes.end.min(inode.size));
        if start >= end {
            return Ok(end);
        }
        let mut join = Join {
            start,
            end,
            pending: None,
            each,
        };
        let bsize = self.volume.bsize;
        let blocks = start / bsize..end.div_ceil(bsize);
        let (mut left, mut stopped) = (pointers, None);
        let walked = self.walk(inode, blocks, &mut |piece| {
            let lbn = match piece {
                Piece::Hole { lbn, .. } | Piece::Data { lbn, .. } => lbn,
                Piece::Pointers { .. } => return Ok(()),
            };
            if left == 0 {
                stopped = Some(lbn * bsize);
                return Err(Kind::Interrupted.into());
            }
            left -= 1;
            match piece {
                Piece::Hole { lbn, count } => {
                    join.add(lbn * bsize, count.saturating_mul(bsize), None)
                }
                Piece::Data { lbn, block } => {
                    let (place, len) = (
                        block.first * self.volume.fsize,
                        inode.block_len(self.volume, lbn),
                    );
                    join.add(lbn * bsize, len, Some(place))
                }
                Piece::Pointers { .. } => Ok(()),
            }
        });
        if stopped.is_none() {
            walked?;
        }
        join.finish()?;
        Ok(stopped.unwrap_or(end))
    }

    /// Calls `each` for all blocks of an inode: those with data, with pointers, and with extended
    /// attributes.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub(crate) fn blocks(
        &self,
        inode: &Inode,
        each: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<()> {
        let mut ext = u64::from(inode.extsize);
        for &first in &inode.extb {
            let len = ext.min(self.volume.bsize);
            if first != 0 && len > 0 {
                let fragments = len.div_ceil(self.volume.fsize);
                each(self.checked(inode, "di_extb", first, fragments, true)?)?;
            }
            ext -= len;
        }
        if !inode.has_blocks(self.volume) {
            return Ok(());
        }
        let count = inode.size.div_ceil(self.volume.bsize);
        self.walk(inode, 0..count, &mut |piece| match piece {
            Piece::Hole { .. } => Ok(()),
            Piece::Data { block, .. } | Piece::Pointers { block } => each(block),
        })
    }

    /// Returns a block, if it is on the volume.
    pub(crate) fn checked(
        &self,
        inode: &Inode,
        what: &'static str,
        first: u64,
        fragments: u64,
        is_data: bool,
    ) -> Result<Block> {
        let within = first % self.volume.frag + fragments <= self.volume.frag;
        if !within || first.saturating_add(fragments) > self.volume.size {
            let found = format!("fragment {first} (inode {})", inode.ino);
            let expected = format!("{fragments} in a block, below {}", self.volume.size);
            return Err(Error::corrupt(what, inode.at, found, expected));
        }
        Ok(Block {
            first,
            fragments,
            is_data,
        })
    }

    /// Calls `each` for some blocks of a file, in order.
    fn walk(
        &self,
        inode: &Inode,
        blocks: Range<u64>,
        each: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let mut walk = Walk {
            reader: self,
            inode,
            blocks: blocks.clone(),
            left: self.volume.size / self.volume.frag + 1,
            each,
        };
        let direct = inode.db.iter().zip(0..);
        for (&first, lbn) in direct.filter(|(_, lbn)| blocks.contains(lbn)) {
            walk.data(lbn, first)?;
        }
        let mut first = UFS_NDADDR;
        for (&pointer, level) in inode.ib.iter().zip(1..) {
            if first >= blocks.end {
                break;
            }
            walk.indirect(pointer, level, first)?;
            first = first.saturating_add(walk.span(level));
        }
        Ok(())
    }

    /// Reads bytes of a file, holes as zeros, with one request for each run if the cache allows.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub(crate) fn read(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0_usize;
        self.runs(inode, offset, buf.len() as u64, &mut |run| {
            let len = usize::try_from(run.len).unwrap_or(usize::MAX);
            let part = buf
                .get_mut(done..done.saturating_add(len))
                .unwrap_or_default();
            match (run.place, inode.kind()) {
                (None, _) => part.fill(0),
                (Some(place), Some(FileKind::Dir)) => self.cache.read(place, part)?,
                (Some(place), _) => self.cache.read_once(place, part)?,
            }
            done += part.len();
            Ok(())
        })?;
        Ok(done)
    }

    /// Returns the target of a symlink.
    ///
    /// # Errors
    /// `Corrupt` for a target that is too long; as [`runs`](Self::runs).
    pub(crate) fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        if let Some(target) = inode.short_target(self.volume) {
            return Ok(target);
        }
        if inode.size > TARGET_MAX {
            let expected = format!("at most {TARGET_MAX} in a symlink");
            let found = inode.size.to_string();
            return Err(Error::corrupt("di_size", inode.at, found, expected));
        }
        let mut target = vec![0; usize::try_from(inode.size).unwrap_or(0)];
        self.read(inode, 0, &mut target)?;
        Ok(target)
    }
}

/// A piece of a file.
enum Piece {
    Hole { lbn: u64, count: u64 },
    Data { lbn: u64, block: Block },
    Pointers { block: Block },
}

struct Walk<'a> {
    reader: &'a Reader<'a>,
    inode: &'a Inode,
    /// The blocks to visit.
    blocks: Range<u64>,
    /// How many more blocks can come: a file has no more than its volume.
    left: u64,
    each: &'a mut dyn FnMut(Piece) -> Result<()>,
}

impl Walk<'_> {
    /// Returns how many blocks an indirect block of a level leads to.
    fn span(&self, level: u32) -> u64 {
        self.reader.volume.nindir.saturating_pow(level)
    }

    fn data(&mut self, lbn: u64, first: u64) -> Result<()> {
        if first == 0 {
            return (self.each)(Piece::Hole { lbn, count: 1 });
        }
        let volume = self.reader.volume;
        let fragments = self.inode.block_len(volume, lbn) / volume.fsize;
        let block = self.take("di_db", first, fragments, true)?;
        (self.each)(Piece::Data { lbn, block })
    }

    fn take(
        &mut self,
        what: &'static str,
        first: u64,
        fragments: u64,
        is_data: bool,
    ) -> Result<Block> {
        let block = self
            .reader
            .checked(self.inode, what, first, fragments, is_data)?;
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let found = format!("more blocks than the volume (inode {})", self.inode.ino);
            Error::corrupt("di_ib", self.inode.at, found, "each block once")
        })?;
        Ok(block)
    }

    /// Visits the blocks below an indirect block. `first` is the first of them in the file.
    fn indirect(&mut self, pointer: u64, level: u32, first: u64) -> Result<()> {
        let (each_is, end) = (self.span(level - 1), first.saturating_add(self.span(level)));
        let (from, to) = (self.blocks.start.max(first), self.blocks.end.min(end));
        if from >= to {
            return Ok(());
        }
        if pointer == 0 {
            let count = to - from;
            return (self.each)(Piece::Hole { lbn: from, count });
        }
        let block = self.take("di_ib", pointer, self.reader.volume.frag, false)?;
        (self.each)(Piece::Pointers { block })?;
        let (mut index, last) = ((from - first) / each_is, (to - 1 - first) / each_is);
        while index <= last {
            let pointers = self.pointers(&block, index, (last + 1 - index).min(POINTERS))?;
            for pointer in pointers {
                let lbn = first + index * each_is;
                match level {
                    1 => self.data(lbn, pointer)?,
                    _ => self.indirect(pointer, level - 1, lbn)?,
                }
                index += 1;
            }
        }
        Ok(())
    }

    /// Returns some pointers of an indirect block.
    fn pointers(&self, block: &Block, index: u64, count: u64) -> Result<Vec<u64>> {
        let volume = self.reader.volume;
        let width: usize = if volume.variant == Variant::Ufs2 {
            8
        } else {
            4
        };
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0) * width];
        let at = block.first * volume.fsize + index * width as u64;
        self.reader.cache.read(at, &mut bytes)?;
        let pointer = |bytes: &[u8]| match width {
            8 => u64::get(volume.order, bytes, 0),
            _ => u32::get(volume.order, bytes, 0).into(),
        };
        Ok(bytes.chunks_exact(width).map(pointer).collect())
    }
}

/// Joins adjacent runs, and cuts them to the requested range.
struct Join<'a> {
    start: u64,
    end: u64,
    pending: Option<Run>,
    each: &'a mut dyn FnMut(Run) -> Result<()>,
}

impl Join<'_> {
    fn add(&mut self, offset: u64, len: u64, place: Option<u64>) -> Result<()> {
        let from = offset.max(self.start);
        let to = offset.saturating_add(len).min(self.end);
        if from >= to {
            return Ok(());
        }
        let place = place.map(|place| place + (from - offset));
        let len = to - from;
        if let Some(last) = &mut self.pending {
            let goes_on = match (last.place, place) {
                (None, None) => true,
                (Some(last_place), Some(place)) => last_place + last.len == place,
                _ => false,
            };
            if goes_on {
                last.len += len;
                return Ok(());
            }
            (self.each)(*last)?;
        }
        self.pending = Some(Run {
            offset: from,
            len,
            place,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        match self.pending.take() {
            Some(run) => (self.each)(run),
            None => Ok(()),
        }
    }
}

//! What files and symlinks hold.

use crate::content::map::BlockMap;
use crate::content::xattr::inline_rest;
use crate::disk::ondisk::{I_BLOCK_LEN, iflag};
use crate::disk::run::{Run, Spot};
use std::ops::Range;
use volary_core::{Error, Extent, FileKind, Kind, Place, Result};

/// Longest target of a symlink, as Linux has it, in bytes.
const TARGET_MAX: u64 = 4096;

/// Runs of a file that one call tells of; a tree can lead to the same blocks over and over.
const RUNS_MAX: u32 = 1 << 18;

/// What an inode holds, in its blocks or in itself.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    map: BlockMap<'a>,
}

impl<'a> Content<'a> {
    pub(crate) fn new(map: BlockMap<'a>) -> Self {
        Self { map }
    }

    /// Returns the map of the blocks.
    pub(crate) fn map(&self) -> BlockMap<'a> {
        self.map
    }

    /// Returns all that stands in the inode in place of blocks.
    ///
    /// # Errors
    /// `Corrupt` for a size that is more than there is.
    pub(crate) fn inline(&self) -> Result<Vec<u8>> {
        let inode = self.map.inode();
        let mut bytes = inode.head.i_block.to_vec();
        bytes.extend(inline_rest(self.map.blocks().volume(), inode)?);
        let len = usize::try_from(inode.size).unwrap_or(usize::MAX);
        if bytes.len().max(I_BLOCK_LEN) < len {
            let found = format!("{len} (inode {})", inode.ino);
            let expected = format!("at most {}, which is in the inode", bytes.len());
            return Err(Error::corrupt("i_size", inode.at, found, expected));
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Reads bytes of a file up to its end.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let inode = self.map.inode();
        let left = inode.size.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let buf = buf.get_mut(..len).unwrap_or_default();
        if len == 0 {
            return Ok(0);
        }
        if inode.has(iflag::INLINE_DATA) {
            let bytes = self.inline()?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = bytes.get(from..).unwrap_or_default();
            for (to, from) in buf.iter_mut().zip(part) {
                *to = *from;
            }
        } else {
            self.map.read(offset, buf)?;
        }
        Ok(len)
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Invalid` if it is none; `Unsupported` if it is encrypted; `Corrupt`; `Io`.
    pub(crate) fn target(&self) -> Result<Vec<u8>> {
        let inode = self.map.inode();
        if inode.kind() != Some(FileKind::Symlink) {
            return Err(Kind::Invalid.into());
        }
        inode.check_clear()?;
        if inode.size > TARGET_MAX {
            let found = format!("{} (inode {})", inode.size, inode.ino);
            let expected = format!("a target of at most {TARGET_MAX}");
            return Err(Error::corrupt("i_size", inode.at, found, expected));
        }
        let len = usize::try_from(inode.size).unwrap_or(0);
        if inode.is_short_link(self.map.blocks().volume()) {
            return Ok(inode.head.i_block.iter().copied().take(len).collect());
        }
        let mut target = vec![0; len];
        self.read(0, &mut target)?;
        // A target that Linux wrote has a NUL after it, which is not counted.
        if let Some(end) = target.iter().position(|byte| *byte == 0) {
            target.truncate(end);
        }
        Ok(target)
    }

    /// Adds where the bytes lie.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn extents(&self, bytes: Range<u64>, out: &mut Vec<Extent>) -> Result<()> {
        let inode = self.map.inode();
        let (offset, end) = (bytes.start, bytes.end.min(inode.size));
        if offset >= end {
            return Ok(());
        }
        if inode.has(iflag::INLINE_DATA) {
            out.push(Extent {
                offset,
                len: end - offset,
                place: Place::Encoded,
            });
            return Ok(());
        }
        let block = self.map.blocks().volume().block;
        let mut left = RUNS_MAX;
        let walked = self
            .map
            .each_run(offset / block, end.div_ceil(block), |run| {
                if left == 0 {
                    return Err(Kind::Interrupted.into());
                }
                left -= 1;
                self.push_extents(run, &(offset..end), out);
                Ok(())
            });
        if left > 0 {
            return walked;
        }
        // Who wants to know more asks from there on.
        let known = out.last().map_or(offset, |last| last.offset + last.len);
        if known < end {
            Extent::append(out, known..end, Place::Encoded);
        }
        Ok(())
    }

    /// Adds the extents of a run, as far as it has these bytes; a block that is in the journal is
    /// one of its own.
    fn push_extents(&self, run: Run, bytes: &Range<u64>, out: &mut Vec<Extent>) {
        let block = self.map.blocks().volume().block;
        let start = (run.first * block).max(bytes.start);
        let stop = run.end().saturating_mul(block).min(bytes.end);
        let Spot::Data(first) = run.spot else {
            return Extent::append(out, start..stop, Place::Hole);
        };
        let mut at = start;
        while at < stop {
            let number = first + (at / block - run.first);
            let left = stop.div_ceil(block) - at / block;
            let (count, place) = self.map.blocks().place(number, left);
            let until = ((at / block + count) * block).min(stop);
            let place = match place {
                Place::Device(place) => Place::Device(place + at % block),
                other => other,
            };
            Extent::append(out, at..until, place);
            at = until;
        }
    }
}

//! The content of files: writing, growing, cutting, holes.

use crate::change::bmap::Map;
use crate::change::edit::Step;
use crate::change::epoch::Epoch;
use crate::disk::blocks::Reader;
use crate::disk::volume::Volume;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Kind, Result};

/// A file whose content is changed. Directories and symlinks have content too.
pub(crate) struct File<'e, 'a> {
    pub(crate) map: Map<'e, 'a>,
    pub(crate) epoch: &'e mut Epoch,
}

impl<'a> File<'_, 'a> {
    fn reader(&self) -> Reader<'a> {
        self.map.reader()
    }

    fn volume(&self) -> &'a Volume {
        self.map.volume()
    }

    /// Writes bytes; the file grows as it must. Its times are the caller's.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`: some of the content may be new then.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Step<()> {
        let end = offset.checked_add(data.len() as u64).ok_or(Kind::TooBig)?;
        if end > self.volume().size_max() {
            return Err(Kind::TooBig.into());
        }
        if data.is_empty() {
            return Ok(());
        }
        let bsize = self.volume().bsize;
        let old = self.map.inode()?.size;
        let mut fresh = Vec::new();
        for lbn in offset / bsize..end.div_ceil(bsize) {
            let (block, is_new) = self.map.block_for(lbn)?;
            if is_new {
                fresh.push((lbn, block));
            }
        }
        // Nothing can stop it from here on but the device.
        if end > old {
            self.clear_tail(old)?;
        }
        for (lbn, block) in fresh {
            self.clear_around(lbn, block, &(offset..end))?;
        }
        let size = old.max(end);
        self.map.mem()?.size = size;
        Ok(self.put_content(offset, data)?)
    }

    /// Makes zeros of what a block that was taken for a file holds outside of the bytes `filled` of
    /// the file.
    fn clear_around(&self, lbn: u64, block: u32, filled: &Range<u64>) -> Result<()> {
        let bsize = self.volume().bsize;
        let (start, end) = (lbn * bsize, (lbn + 1) * bsize);
        let place = u64::from(block) * bsize;
        for (a, b) in [(start, filled.start.min(end)), (filled.end.max(start), end)] {
            if a < b {
                let zeros = vec![0; usize::try_from(b - a).unwrap_or(0)];
                self.reader()
                    .cache
                    .write(place + a - start, &zeros, Stage::DATA)?;
            }
        }
        Ok(())
    }

    /// Makes zeros of what the last block holds behind the end, if it is there.
    fn clear_tail(&self, size: u64) -> Result<()> {
        let bsize = self.volume().bsize;
        self.clear(size..size.next_multiple_of(bsize))
    }

    /// Makes zeros of a range of a file, in blocks that are there, past its end too.
    pub(crate) fn clear(&self, bytes: Range<u64>) -> Result<()> {
        let mut inode = self.map.inode()?;
        inode.size = inode.size.max(bytes.end);
        self.reader().runs(&inode, bytes, &mut |run| {
            let zeros = vec![0; usize::try_from(run.len).unwrap_or(0)];
            match run.place {
                Some(place) => self.reader().cache.write(place, &zeros, Stage::DATA),
                None => Ok(()),
            }
        })
    }

    /// Writes content for which there is room.
    fn put_content(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let inode = self.map.inode()?;
        let mut rest = data;
        let bytes = offset..offset.saturating_add(data.len() as u64);
        self.reader().runs(&inode, bytes, &mut |run| {
            let len = usize::try_from(run.len).unwrap_or(0).min(rest.len());
            let (now, later) = rest.split_at(len);
            rest = later;
            match run.place {
                Some(place) => self.map.edit.write_content(place, now),
                None => Err(Kind::NoSpace.into()),
            }
        })
    }

    /// Cuts a file, or lets it grow by a hole.
    ///
    /// # Errors
    /// `TooBig`; `Corrupt`; `Io`.
    pub(crate) fn resize(&mut self, size: u64) -> Step<()> {
        if size > self.volume().size_max() {
            return Err(Kind::TooBig.into());
        }
        let bsize = self.volume().bsize;
        let old = self.map.inode()?.size;
        if size > old {
            self.clear_tail(old)?;
        } else {
            self.map.free_blocks(&(size.div_ceil(bsize)..u64::MAX))?;
            self.epoch.cut.insert(self.map.ino);
        }
        self.map.mem()?.size = size;
        Ok(())
    }

    /// Frees the whole blocks in a range of a file, and zeros the rest of the range.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) -> Step<()> {
        let bsize = self.volume().bsize;
        let size = self.map.inode()?.size;
        let end = offset.saturating_add(len).min(size);
        if offset >= end {
            return Ok(());
        }
        // The last block goes as a whole: nothing is behind the end.
        let stop = if end == size {
            end.next_multiple_of(bsize)
        } else {
            end
        };
        let (first, last) = (offset.div_ceil(bsize), stop / bsize);
        if first >= last {
            return Ok(self.clear(offset..end)?);
        }
        self.map.free_blocks(&(first..last))?;
        self.clear(offset..first * bsize)?;
        if stop > last * bsize {
            self.clear(last * bsize..stop)?;
        }
        Ok(())
    }
}

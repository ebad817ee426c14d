//! The content of files: writing, growing, cutting, holes.

use crate::edit::{Edit, Step};
use volary_block::Stage;
use volary_core::{Kind, Result};

impl Edit<'_> {
    /// Writes bytes; the file grows as it must. Its times are the caller's.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`: some of the content may be new then.
    pub(crate) fn write(&mut self, ino: u32, offset: u64, data: &[u8]) -> Step<()> {
        let end = offset.checked_add(data.len() as u64).ok_or(Kind::TooBig)?;
        if end > self.volume.size_max() {
            return Err(Kind::TooBig.into());
        }
        if data.is_empty() {
            return Ok(());
        }
        let bsize = self.volume.bsize;
        let old = self.inode(ino)?.size;
        let mut fresh = Vec::new();
        for lbn in offset / bsize..end.div_ceil(bsize) {
            let (block, is_new) = self.block_for(ino, lbn)?;
            if is_new {
                fresh.push((lbn, block));
            }
        }
        // Nothing can stop it from here on but the device.
        if end > old {
            self.clear_tail(ino, old)?;
        }
        for (lbn, block) in fresh {
            self.clear_around(lbn, block, (offset, end))?;
        }
        let size = old.max(end);
        self.node(ino)?.mem.size = size;
        Ok(self.put_content(ino, offset, data)?)
    }

    /// Makes zeros of what a block that was taken for a file holds outside of a range of the file.
    fn clear_around(&self, lbn: u64, block: u32, (from, to): (u64, u64)) -> Result<()> {
        let bsize = self.volume.bsize;
        let (start, end) = (lbn * bsize, (lbn + 1) * bsize);
        let place = u64::from(block) * bsize;
        for (a, b) in [(start, from.min(end)), (to.max(start), end)] {
            if a < b {
                let zeros = vec![0; usize::try_from(b - a).unwrap_or(0)];
                self.cache.write(place + a - start, &zeros, Stage::DATA)?;
            }
        }
        Ok(())
    }

    /// Makes zeros of what the last block holds behind the end, if it is there.
    fn clear_tail(&self, ino: u32, size: u64) -> Result<()> {
        let bsize = self.volume.bsize;
        let tail = size.next_multiple_of(bsize) - size;
        self.clear(ino, (size, tail))
    }

    /// Makes zeros of a range of a file, in blocks that are there, past its end too.
    pub(crate) fn clear(&self, ino: u32, (offset, len): (u64, u64)) -> Result<()> {
        let mut inode = self.inode(ino)?;
        inode.size = inode.size.max(offset.saturating_add(len));
        self.reader().runs(&inode, (offset, len), &mut |run| {
            let zeros = vec![0; usize::try_from(run.len).unwrap_or(0)];
            match run.place {
                Some(place) => self.cache.write(place, &zeros, Stage::DATA),
                None => Ok(()),
            }
        })
    }

    /// Writes content for which there is room.
    fn put_content(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<()> {
        let inode = self.inode(ino)?;
        let mut rest = data;
        let range = (offset, data.len() as u64);
        self.reader().runs(&inode, range, &mut |run| {
            let len = usize::try_from(run.len).unwrap_or(0).min(rest.len());
            let (now, later) = rest.split_at(len);
            rest = later;
            match run.place {
                Some(place) => self.put_data(place, now),
                None => Err(Kind::NoSpace.into()),
            }
        })
    }

    /// Writes content at byte `place` of the device.
    fn put_data(&self, place: u64, data: &[u8]) -> Result<()> {
        match data.len() >= self.cache.direct_from() {
            true => self.cache.write_direct(place, data),
            false => self.cache.write(place, data, Stage::DATA),
        }
    }

    /// Cuts a file, or lets it grow by a hole.
    ///
    /// # Errors
    /// `TooBig`; `Corrupt`; `Io`.
    pub(crate) fn resize(&mut self, ino: u32, size: u64) -> Step<()> {
        if size > self.volume.size_max() {
            return Err(Kind::TooBig.into());
        }
        let bsize = self.volume.bsize;
        let old = self.inode(ino)?.size;
        if size > old {
            self.clear_tail(ino, old)?;
        } else {
            self.free_blocks(ino, &(size.div_ceil(bsize)..u64::MAX))?;
            self.epoch.cut.insert(ino);
        }
        self.node(ino)?.mem.size = size;
        Ok(())
    }

    /// Frees the whole blocks in a range of a file, and zeros the rest of the range.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn punch(&mut self, ino: u32, offset: u64, len: u64) -> Step<()> {
        let bsize = self.volume.bsize;
        let size = self.inode(ino)?.size;
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
            return Ok(self.clear(ino, (offset, end - offset))?);
        }
        self.free_blocks(ino, &(first..last))?;
        self.clear(ino, (offset, first * bsize - offset))?;
        if stop > last * bsize {
            self.clear(ino, (last * bsize, stop - last * bsize))?;
        }
        Ok(())
    }

    /// Notes that the content of a node has changed.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn touch_content(&mut self, ino: u32) -> Result<()> {
        let now = self.now;
        let [_, mtime, ctime] = &mut self.node(ino)?.mem.times;
        (*mtime, *ctime) = (now, now);
        Ok(())
    }
}

//! The content of files: writing, growing, cutting, holes.
//!
//! The last block of a file of at most twelve is as many fragments as it needs. When it
//! grows (section 2.2 of the paper), there is room behind it; or the fragments that it needs
//! are taken elsewhere, and the content is copied; or it becomes a whole block.

use crate::alloc::Run;
use crate::edit::{Edit, Step, Stop};
use crate::inode::Inode;
use crate::ondisk::UFS_NDADDR;
use crate::policy;
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
        let size = self.inode(ino)?.size.max(end);
        self.grow_tail(ino, size)?;
        let bsize = self.volume.bsize;
        for lbn in offset / bsize..end.div_ceil(bsize) {
            let start = lbn * bsize;
            let from = offset.max(start) - start;
            let to = end.min(start + bsize) - start;
            self.room_for(ino, lbn, size, (from, to))?;
        }
        self.node(ino)?.mem.size = size;
        self.realloc_written(ino, &(offset..end))?;
        self.put_content(ino, offset, data)?;
        Ok(())
    }

    /// Writes content for which there is room.
    fn put_content(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<()> {
        let inode = self.inode(ino)?;
        let mut rest = data;
        self.reader()
            .runs(&inode, offset, data.len() as u64, &mut |run| {
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
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put_data(&self, place: u64, data: &[u8]) -> Result<()> {
        match data.len() >= self.cache.direct_from() {
            true => self.cache.write_direct(place, data),
            false => self.cache.write(place, data, Stage::DATA),
        }
    }

    /// Makes room for block `lbn` of a file that will have `size` bytes; what is new in it
    /// and not of bytes `filled` becomes zeros.
    fn room_for(&mut self, ino: u32, lbn: u64, size: u64, filled: (u64, u64)) -> Step<()> {
        let volume = self.volume;
        let mut inode = self.inode(ino)?;
        let old = inode.block_len(volume, lbn) / volume.fsize;
        let old = if lbn * volume.bsize >= inode.size {
            0
        } else {
            old
        };
        inode.size = size;
        let count = inode.block_len(volume, lbn) / volume.fsize;
        let first = self.pointer(ino, lbn)?;
        let (at, from) = match first {
            0 => (self.take_block(ino, lbn, count)?.first, 0),
            _ if old < count && lbn < UFS_NDADDR => {
                let piece = self
                    .reader()
                    .checked(&inode, "di_db", first, old.max(1), true)?;
                let piece = Run {
                    first: piece.first,
                    count: old.max(1),
                };
                (self.grow_piece(ino, lbn, piece, count)?, old.max(1))
            }
            _ => return Ok(()),
        };
        let fresh = (from * volume.fsize, count * volume.fsize);
        self.zero_around(at * volume.fsize, fresh, filled)?;
        Ok(())
    }

    /// Zeros of a block at byte `place`: its bytes `fresh`, without those that are filled.
    fn zero_around(&self, place: u64, fresh: (u64, u64), filled: (u64, u64)) -> Result<()> {
        let before = (fresh.0, filled.0.min(fresh.1));
        let after = (filled.1.max(fresh.0), fresh.1);
        for (from, to) in [before, after] {
            if from < to {
                let zeros = vec![0; usize::try_from(to - from).unwrap_or(0)];
                self.cache.write(place + from, &zeros, Stage::DATA)?;
            }
        }
        Ok(())
    }

    /// Lets the last block's piece grow to `count` fragments; gives where it is then.
    fn grow_piece(&mut self, ino: u32, lbn: u64, piece: Run, count: u64) -> Step<u64> {
        let volume = self.volume;
        let more = (count - piece.count) * (volume.fsize / 512);
        if self.extend(piece, count)? {
            let mem = &mut self.node(ino)?.mem;
            mem.blocks = mem.blocks.saturating_add(more);
            return Ok(piece.first);
        }
        let before = self.pointer_before(ino, lbn)?;
        let mut wish = policy::block(volume, self.alloc, ino, lbn, None);
        let grower = self.grower(ino, lbn);
        if let Some(grower) = &grower {
            wish = self.alloc.steer(&self.reader(), grower, before, wish)?;
        }
        let run = self.take_to_grow(count, wish)?;
        let mut content = vec![0; usize::try_from(piece.count * volume.fsize).unwrap_or(0)];
        self.cache.read(piece.first * volume.fsize, &mut content)?;
        let place = run.first * volume.fsize;
        self.cache.write(place, &content, Stage::DATA)?;
        self.free(piece);
        let mem = &mut self.node(ino)?.mem;
        mem.blocks = mem.blocks.saturating_add(more);
        self.set_pointer(ino, lbn, run.first)?;
        if let Some(grower) = &grower {
            self.alloc.keep_ahead(&self.reader(), grower, run)?;
        }
        self.note_place(ino, lbn, before, run.first);
        Ok(run.first)
    }

    /// Before a file grows to `size`: what is between its end and that of its last block
    /// becomes zeros, and the block whole if it will not be the last.
    fn grow_tail(&mut self, ino: u32, size: u64) -> Step<()> {
        let volume = self.volume;
        let inode = self.inode(ino)?;
        if size <= inode.size {
            return Ok(());
        }
        // On the disk it may still be longer: zeros would show there.
        let was_cut = self
            .nodes
            .get(ino)
            .is_some_and(|n| n.disk.size > n.mem.size);
        if was_cut && !self.nodes.get(ino).is_some_and(crate::node::Node::is_new) {
            return Err(Stop::Commit);
        }
        if inode.size.is_multiple_of(volume.bsize) {
            return Ok(());
        }
        let lbn = inode.size / volume.bsize;
        let first = self.pointer(ino, lbn)?;
        if first == 0 {
            return Ok(());
        }
        let len = inode.block_len(volume, lbn);
        let block = self
            .reader()
            .checked(&inode, "di_db", first, len / volume.fsize, true)?;
        let within = inode.size - lbn * volume.bsize;
        self.zero_around(block.first * volume.fsize, (within, len), (len, len))?;
        if size.div_ceil(volume.bsize) > lbn + 1 {
            self.room_for(ino, lbn, size, (len, len))?;
            self.node(ino)?.mem.size = (lbn + 1) * volume.bsize;
        }
        Ok(())
    }

    /// Cuts a file, or lets it grow by zeros. A file ends in no hole, as other systems want
    /// it.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn resize(&mut self, ino: u32, size: u64) -> Step<()> {
        if size > self.volume.size_max() {
            return Err(Kind::TooBig.into());
        }
        let volume = self.volume;
        let inode = self.inode(ino)?;
        if size == inode.size {
            return Ok(());
        }
        if size > inode.size {
            self.grow_tail(ino, size)?;
        } else {
            self.cut(&inode, size)?;
        }
        if size > 0 {
            let lbn = (size - 1) / volume.bsize;
            self.room_for(ino, lbn, size, (0, 0))?;
        }
        self.node(ino)?.mem.size = size;
        Ok(())
    }

    /// Frees what is behind byte `size`.
    fn cut(&mut self, inode: &Inode, size: u64) -> Step<()> {
        let volume = self.volume;
        let ino = inode.ino;
        self.alloc.give_up(ino);
        self.free_from(ino, size.div_ceil(volume.bsize))?;
        if size == 0 {
            self.node(ino)?.mem.size = 0;
            return Ok(());
        }
        let lbn = (size - 1) / volume.bsize;
        let shorter = Inode {
            size,
            ..inode.clone()
        };
        let old = inode.block_len(volume, lbn) / volume.fsize;
        let new = shorter.block_len(volume, lbn) / volume.fsize;
        let first = self.pointer(ino, lbn)?;
        if first != 0 && new < old {
            let block = self.reader().checked(inode, "di_db", first, old, true)?;
            let (first, count) = (block.first + new, old - new);
            self.free_of(ino, Run { first, count })?;
        }
        self.node(ino)?.mem.size = size;
        self.epoch.cut.insert(ino);
        Ok(())
    }

    /// Makes a hole: whole blocks go, but for the last of the file; the rest becomes zeros.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn punch(&mut self, ino: u32, offset: u64, len: u64) -> Step<()> {
        let volume = self.volume;
        let bsize = volume.bsize;
        let inode = self.inode(ino)?;
        let end = offset.saturating_add(len).min(inode.size);
        if offset >= end {
            return Ok(());
        }
        let last = (inode.size - 1) / bsize;
        let mut runs = Vec::new();
        self.reader()
            .runs(&inode, offset, end - offset, &mut |run| {
                runs.extend(run.place.map(|_| (run.offset, run.offset + run.len)));
                Ok(())
            })?;
        for (from, to) in runs {
            for lbn in from / bsize..to.div_ceil(bsize) {
                let first = self.pointer(ino, lbn)?;
                let (start, stop) = (lbn * bsize, (lbn + 1) * bsize);
                if lbn < last && offset <= start && stop <= end {
                    let count = volume.frag;
                    let block = self.reader().checked(&inode, "di_db", first, count, true)?;
                    self.free_of(
                        ino,
                        Run {
                            first: block.first,
                            count,
                        },
                    )?;
                    self.set_pointer(ino, lbn, 0)?;
                    continue;
                }
                let hole = (offset.max(start) - start, end.min(stop) - start);
                self.zero_around(first * volume.fsize, hole, (hole.1, hole.1))?;
            }
        }
        self.node(ino)?;
        Ok(())
    }
}

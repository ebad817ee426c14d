//! The content of files: writing, growing, cutting, holes.
//!
//! The last block of a file of at most twelve blocks takes only as many fragments as it needs. When
//! it grows (section 2.2 of the paper), it grows in place if there is room behind it. Otherwise it
//! moves to other fragments with a copy of its content, or becomes a whole block.

use crate::change::bmap::Map;
use crate::change::edit::{Step, Stop};
use crate::change::epoch::Epoch;
use crate::change::realloc::Clusters;
use crate::disk::ondisk::UFS_NDADDR;
use crate::disk::volume::Volume;
use crate::groups::alloc::Run;
use crate::inodes::inode::Inode;
use crate::inodes::node::Node;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Kind, Result};

/// A file whose content is changed. Directories and long symlinks have content too.
pub(crate) struct File<'e, 'a> {
    pub(crate) map: Map<'e, 'a>,
    epoch: &'e mut Epoch,
}

impl<'e, 'a> File<'e, 'a> {
    pub(crate) fn new(map: Map<'e, 'a>, epoch: &'e mut Epoch) -> Self {
        Self { map, epoch }
    }

    fn volume(&self) -> &'a Volume {
        self.map.volume()
    }

    /// Returns the file's clusters.
    pub(crate) fn clusters(&mut self) -> Clusters<'_, 'a> {
        Clusters {
            map: self.map.part(),
            scattered: &mut self.epoch.scattered,
        }
    }

    /// Writes bytes, and lets the file grow as needed. The caller sets its times.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`: part of the content may then be new.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Step<()> {
        let end = offset.checked_add(data.len() as u64).ok_or(Kind::TooBig)?;
        if end > self.volume().size_max() {
            return Err(Kind::TooBig.into());
        }
        if data.is_empty() {
            return Ok(());
        }
        let size = self.map.inode()?.size.max(end);
        self.grow_tail(size)?;
        let bsize = self.volume().bsize;
        for lbn in offset / bsize..end.div_ceil(bsize) {
            let start = lbn * bsize;
            let from = offset.max(start) - start;
            let to = end.min(start + bsize) - start;
            self.room_for(lbn, size, from..to)?;
        }
        self.map.mem()?.size = size;
        self.clusters().realloc_written(&(offset..end))?;
        self.put_content(offset, data)?;
        Ok(())
    }

    /// Writes content whose blocks are already allocated.
    fn put_content(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let inode = self.map.inode()?;
        let mut rest = data;
        self.map
            .reader()
            .runs(&inode, offset, data.len() as u64, &mut |run| {
                let len = usize::try_from(run.len).unwrap_or(0).min(rest.len());
                let (now, later) = rest.split_at(len);
                rest = later;
                match run.place {
                    Some(place) => self.map.edit.write_content(place, now),
                    None => Err(Kind::NoSpace.into()),
                }
            })
    }

    /// Allocates block `lbn` of a file that will have `size` bytes. New bytes of it outside the
    /// range `filled` become zeros.
    fn room_for(&mut self, lbn: u64, size: u64, filled: Range<u64>) -> Step<()> {
        let volume = self.volume();
        let mut inode = self.map.inode()?;
        let old = inode.block_len(volume, lbn) / volume.fsize;
        let old = if lbn * volume.bsize >= inode.size {
            0
        } else {
            old
        };
        inode.size = size;
        let count = inode.block_len(volume, lbn) / volume.fsize;
        let first = self.map.pointer(lbn)?;
        let (at, from) = match first {
            0 => (self.take_block(lbn, count)?.first, 0),
            _ if old < count && lbn < UFS_NDADDR => {
                let piece = self
                    .map
                    .reader()
                    .checked(&inode, "di_db", first, old.max(1), true)?;
                let piece = Run {
                    first: piece.first,
                    count: old.max(1),
                };
                (self.grow_piece(lbn, piece, count)?, old.max(1))
            }
            _ => return Ok(()),
        };
        let fresh = from * volume.fsize..count * volume.fsize;
        self.zero_around(at * volume.fsize, fresh, filled)?;
        Ok(())
    }

    /// Allocates a block. If it does not lie behind the one before, its cluster is noted for
    /// reallocation.
    fn take_block(&mut self, lbn: u64, count: u64) -> Step<Run> {
        let (run, before) = self.map.take_block(lbn, count)?;
        self.clusters().note_place(lbn, before, run.first);
        Ok(run)
    }

    /// Writes zeros over the bytes `fresh` of a block at byte `place`, except those that are
    /// `filled`.
    fn zero_around(&self, place: u64, fresh: Range<u64>, filled: Range<u64>) -> Result<()> {
        let before = fresh.start..filled.start.min(fresh.end);
        let after = filled.end.max(fresh.start)..fresh.end;
        for part in [before, after] {
            if !part.is_empty() {
                let zeros = vec![0; usize::try_from(part.end - part.start).unwrap_or(0)];
                self.map
                    .reader()
                    .cache
                    .write(place + part.start, &zeros, Stage::DATA)?;
            }
        }
        Ok(())
    }

    /// Grows the last block's fragments to `count`. Returns where they then are.
    fn grow_piece(&mut self, lbn: u64, piece: Run, count: u64) -> Step<u64> {
        let volume = self.volume();
        let more = count - piece.count;
        if self.map.room.extend(piece, count)? {
            self.map.count_more(more)?;
            return Ok(piece.first);
        }
        let before = self.map.pointer_before(lbn)?;
        let mut wish = self.map.room.wish(self.map.ino, lbn, None);
        let grower = self.map.grower(lbn);
        if let Some(grower) = &grower {
            wish = self.map.room.steer(grower, before, wish)?;
        }
        let run = self.map.room.take_to_grow(count, wish)?;
        let mut content = vec![0; usize::try_from(piece.count * volume.fsize).unwrap_or(0)];
        self.map
            .reader()
            .cache
            .read(piece.first * volume.fsize, &mut content)?;
        let place = run.first * volume.fsize;
        self.map
            .reader()
            .cache
            .write(place, &content, Stage::DATA)?;
        self.map.room.free(piece);
        self.map.count_more(more)?;
        self.map.set_pointer(lbn, run.first)?;
        if let Some(grower) = &grower {
            self.map.room.keep_ahead(grower, run)?;
        }
        self.clusters().note_place(lbn, before, run.first);
        Ok(run.first)
    }

    /// Prepares a file for growth to `size`. The bytes from its end to the end of its last block
    /// become zeros. That block becomes a whole one if it will not be the last.
    fn grow_tail(&mut self, size: u64) -> Step<()> {
        let volume = self.volume();
        let inode = self.map.inode()?;
        if size <= inode.size {
            return Ok(());
        }
        // If the disk still has a longer file, these zeros would show in it after a power cut.
        let was_cut = |node: &Node| node.disk.size > node.mem.size && !node.is_new();
        if self.map.edit.nodes().get(self.map.ino).is_some_and(was_cut) {
            return Err(Stop::Commit);
        }
        if inode.size.is_multiple_of(volume.bsize) {
            return Ok(());
        }
        let lbn = inode.size / volume.bsize;
        let first = self.map.pointer(lbn)?;
        if first == 0 {
            return Ok(());
        }
        let len = inode.block_len(volume, lbn);
        let block = self
            .map
            .reader()
            .checked(&inode, "di_db", first, len / volume.fsize, true)?;
        let within = inode.size - lbn * volume.bsize;
        self.zero_around(block.first * volume.fsize, within..len, len..len)?;
        if size.div_ceil(volume.bsize) > lbn + 1 {
            self.room_for(lbn, size, len..len)?;
            self.map.mem()?.size = (lbn + 1) * volume.bsize;
        }
        Ok(())
    }

    /// Truncates a file, or extends it with zeros. The last block is always allocated, because
    /// other systems do not allow a file to end in a hole.
    ///
    /// # Errors
    /// `TooBig`; `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn resize(&mut self, size: u64) -> Step<()> {
        if size > self.volume().size_max() {
            return Err(Kind::TooBig.into());
        }
        let volume = self.volume();
        let inode = self.map.inode()?;
        if size == inode.size {
            return Ok(());
        }
        if size > inode.size {
            self.grow_tail(size)?;
        } else {
            self.cut(&inode, size)?;
        }
        if size > 0 {
            let lbn = (size - 1) / volume.bsize;
            self.room_for(lbn, size, 0..0)?;
        }
        self.map.mem()?.size = size;
        Ok(())
    }

    /// Frees all blocks behind byte `size`.
    fn cut(&mut self, inode: &Inode, size: u64) -> Step<()> {
        let volume = self.volume();
        self.map.room.give_up(self.map.ino);
        self.map.free_from(size.div_ceil(volume.bsize))?;
        if size == 0 {
            self.map.mem()?.size = 0;
            return Ok(());
        }
        let lbn = (size - 1) / volume.bsize;
        let shorter = Inode {
            size,
            ..inode.clone()
        };
        let old = inode.block_len(volume, lbn) / volume.fsize;
        let new = shorter.block_len(volume, lbn) / volume.fsize;
        let first = self.map.pointer(lbn)?;
        if first != 0 && new < old {
            let block = self
                .map
                .reader()
                .checked(inode, "di_db", first, old, true)?;
            let (first, count) = (block.first + new, old - new);
            self.map.free_of(Run { first, count })?;
        }
        self.map.mem()?.size = size;
        self.epoch.cut.insert(self.map.ino);
        Ok(())
    }

    /// Makes a hole: whole blocks are freed, except the last one of the file, and the rest becomes
    /// zeros.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) -> Step<()> {
        let volume = self.volume();
        let bsize = volume.bsize;
        let inode = self.map.inode()?;
        let end = offset.saturating_add(len).min(inode.size);
        if offset >= end {
            return Ok(());
        }
        let last = (inode.size - 1) / bsize;
        let mut runs = Vec::new();
        self.map
            .reader()
            .runs(&inode, offset, end - offset, &mut |run| {
                runs.extend(run.place.map(|_| (run.offset, run.offset + run.len)));
                Ok(())
            })?;
        for (from, to) in runs {
            for lbn in from / bsize..to.div_ceil(bsize) {
                let first = self.map.pointer(lbn)?;
                let (start, stop) = (lbn * bsize, (lbn + 1) * bsize);
                if lbn < last && offset <= start && stop <= end {
                    let count = volume.frag;
                    let block = self
                        .map
                        .reader()
                        .checked(&inode, "di_db", first, count, true)?;
                    self.map.free_of(Run {
                        first: block.first,
                        count,
                    })?;
                    self.map.set_pointer(lbn, 0)?;
                    continue;
                }
                let hole = offset.max(start) - start..end.min(stop) - start;
                let filled = hole.end..hole.end;
                self.zero_around(first * volume.fsize, hole, filled)?;
            }
        }
        self.map.mem()?;
        Ok(())
    }
}

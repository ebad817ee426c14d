//! Reading: inodes, and where the bytes of files lie.

use crate::disk::inode::Inode;
use crate::disk::ondisk::{ADDRESSES, BAD_INO, INODE_LEN, TARGET_MAX};
use crate::disk::volume::Volume;
use std::ops::Range;
use volary_block::Cache;
use volary_core::{Attr, Error, Extent, FileKind, Kind, Place, Result};

/// Indirect blocks that are read to count what a file takes; the rest of it counts as full.
const COUNTED_MAX: u32 = 300;

/// Reads a volume.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) volume: &'a Volume,
}

/// Bytes of a file that lie together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// In the file.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// On the device; none of a hole.
    pub(crate) place: Option<u64>,
}

/// Goes through the addresses of a file; keeps the indirect block that it read last.
pub(crate) struct Walker<'a> {
    reader: Reader<'a>,
    inode: &'a Inode,
    leaf: Vec<u32>,
    /// The blocks of the file that `leaf` leads to.
    covers: Range<u64>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(reader: Reader<'a>, inode: &'a Inode) -> Self {
        Self {
            reader,
            inode,
            leaf: Vec::new(),
            covers: 0..0,
        }
    }

    /// Returns the address of a block of the file, and of how many blocks from there on it is known: more
    /// than one only of a hole.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn next(&mut self, lbn: u64) -> Result<(u32, u64)> {
        let volume = self.reader.volume;
        if !self.covers.contains(&lbn) {
            let path = volume.path(lbn).ok_or(Kind::TooBig)?;
            let mut block = self.inode.addr.get(path.slot).copied().unwrap_or(0);
            let mut span = volume.span(path.slot);
            for at in path.at.iter().take(path.depth) {
                if block == 0 {
                    return Ok((0, span.end - lbn));
                }
                let all = self.reader.indirect(self.inode, block)?;
                let each = (span.end - span.start) / volume.pointers();
                if each == 1 {
                    (self.leaf, self.covers) = (all, span);
                    return self.next_of_leaf(lbn);
                }
                block = all.get(*at).copied().unwrap_or(0);
                let start = span.start + each * *at as u64;
                span = start..start + each;
            }
            self.reader.check_address(self.inode, block)?;
            return Ok((block, 1));
        }
        self.next_of_leaf(lbn)
    }

    fn next_of_leaf(&self, lbn: u64) -> Result<(u32, u64)> {
        let at = usize::try_from(lbn - self.covers.start).unwrap_or(0);
        let block = self.leaf.get(at).copied().unwrap_or(0);
        self.reader.check_address(self.inode, block)?;
        Ok((block, 1))
    }
}

impl<'a> Reader<'a> {
    /// Returns an inode, in use or not.
    ///
    /// # Errors
    /// `Stale` if there is no such number; `Io`.
    pub(crate) fn inode_as_it_is(&self, ino: u64) -> Result<Inode> {
        let number = u32::try_from(ino).unwrap_or(0);
        if number == 0 || number > self.volume.inodes {
            return Err(Kind::Stale.into());
        }
        let mut bytes = [0; INODE_LEN];
        self.cache.read(self.volume.inode_at(number), &mut bytes)?;
        Ok(Inode::parse(self.volume, number, &bytes))
    }

    /// Returns an inode that is in use.
    ///
    /// # Errors
    /// `Stale` if there is none, and for that of bad blocks; `Corrupt`; `Io`.
    pub(crate) fn inode(&self, ino: u64) -> Result<Inode> {
        let inode = self.inode_as_it_is(ino)?;
        if inode.mode == 0 || inode.ino == BAD_INO {
            return Err(Kind::Stale.into());
        }
        inode.check(self.volume)
    }

    /// Refuses an address that leads out of the data.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_address(&self, inode: &Inode, block: u32) -> Result<()> {
        let data = self.volume.data();
        if block == 0 || data.contains(&block.into()) {
            return Ok(());
        }
        let found = format!("block {block} (inode {})", inode.ino);
        let expected = format!("one of {} to {}", data.start, data.end - 1);
        Err(Error::corrupt("di_addr", inode.at, found, expected))
    }

    /// Returns the addresses in an indirect block.
    ///
    /// # Errors
    /// `Corrupt` if there can be none; `Io`.
    pub(crate) fn indirect(&self, inode: &Inode, block: u32) -> Result<Vec<u32>> {
        self.check_address(inode, block)?;
        let mut bytes = vec![0; self.volume.block_len()];
        self.cache
            .read(u64::from(block) * self.volume.bsize, &mut bytes)?;
        let order = self.volume.order;
        Ok(bytes.chunks(4).map(|four| order.get32(four, 0)).collect())
    }

    /// Gives `each` the runs of a range of a file, up to its end. Looks at `most` addresses at
    /// most; returns the offset up to which it looked.
    ///
    /// # Errors
    /// `Corrupt`; `Io`; of `each`.
    pub(crate) fn some_runs(
        &self,
        inode: &Inode,
        bytes: Range<u64>,
        most: u64,
        each: &mut dyn FnMut(Run) -> Result<()>,
    ) -> Result<u64> {
        let bsize = self.volume.bsize;
        let end = bytes.end.min(inode.size);
        let mut walker = Walker::new(*self, inode);
        let (mut at, mut left) = (bytes.start, most);
        let mut run: Option<Run> = None;
        while at < end && left > 0 {
            let (block, count) = walker.next(at / bsize)?;
            left -= 1;
            let stop = (at / bsize + count).saturating_mul(bsize).min(end);
            let place = (block != 0).then(|| u64::from(block) * bsize + at % bsize);
            let goes_on = run.as_ref().is_some_and(|run| match (run.place, place) {
                (Some(before), Some(place)) => before + run.len == place,
                (None, None) => true,
                _ => false,
            });
            match &mut run {
                Some(run) if goes_on => run.len += stop - at,
                _ => {
                    let next = Run {
                        offset: at,
                        len: stop - at,
                        place,
                    };
                    if let Some(done) = run.replace(next) {
                        each(done)?;
                    }
                }
            }
            at = stop;
        }
        if let Some(done) = run {
            each(done)?;
        }
        Ok(at)
    }

    /// Gives `each` all runs of a range.
    ///
    /// # Errors
    /// As [`some_runs`](Self::some_runs).
    pub(crate) fn runs(
        &self,
        inode: &Inode,
        bytes: Range<u64>,
        each: &mut dyn FnMut(Run) -> Result<()>,
    ) -> Result<()> {
        self.some_runs(inode, bytes, u64::MAX, each).map(drop)
    }

    /// Reads bytes of a file; returns how many, fewer than asked for only at the end.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        let bytes = offset..offset.saturating_add(buf.len() as u64);
        self.runs(inode, bytes, &mut |run| {
            let len = usize::try_from(run.len).unwrap_or(0);
            if let Some(part) = buf.get_mut(done..done + len) {
                match run.place {
                    Some(place) => self.cache.read_once(place, part)?,
                    None => part.fill(0),
                }
            }
            done += len;
            Ok(())
        })?;
        Ok(done)
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        let most = TARGET_MAX;
        if inode.size > most {
            let found = format!("{} (inode {}, a symlink)", inode.size, inode.ino);
            let expected = format!("{most} at most");
            return Err(Error::corrupt("di_size", inode.at, found, expected));
        }
        let mut bytes = vec![0; usize::try_from(inode.size).unwrap_or(0)];
        self.read(inode, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends where the bytes of a range lie, as far as `most` addresses tell.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        inode: &Inode,
        bytes: Range<u64>,
        most: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let end = bytes.end.min(inode.size);
        let known = self.some_runs(inode, bytes, most, &mut |run| {
            out.push(Extent {
                offset: run.offset,
                len: run.len,
                place: run.place.map_or(Place::Hole, Place::Device),
            });
            Ok(())
        })?;
        // Who wants to know more asks from there on.
        if known < end {
            out.push(Extent {
                offset: known,
                len: end - known,
                place: Place::Encoded,
            });
        }
        Ok(())
    }

    /// Returns blocks that a file takes, with its indirect ones. Damage counts as nothing, and of very
    /// large files what was not looked at counts as if it had no holes.
    pub(crate) fn taken(&self, inode: &Inode) -> u64 {
        if !inode.has_blocks() {
            return 0;
        }
        let volume = self.volume;
        let (mut count, mut left) = (0, COUNTED_MAX);
        let end = inode.size.div_ceil(volume.bsize);
        for slot in 0..ADDRESSES {
            let span = volume.span(slot);
            let block = inode.addr.get(slot).copied().unwrap_or(0);
            if block != 0 && span.start < end {
                count += self.taken_in(inode, block, span, end, &mut left);
            }
        }
        count
    }

    /// Counts the blocks that an address leads to: the blocks `span` of a file that has `end`.
    fn taken_in(
        &self,
        inode: &Inode,
        block: u32,
        span: Range<u64>,
        end: u64,
        left: &mut u32,
    ) -> u64 {
        let len = span.end - span.start;
        if len == 1 {
            return 1;
        }
        if *left == 0 {
            return 1 + span.end.min(end) - span.start;
        }
        *left -= 1;
        let Ok(all) = self.indirect(inode, block) else {
            return 0;
        };
        let each = len / self.volume.pointers();
        let used = all.iter().zip(0_u64..).filter(|(block, _)| **block != 0);
        let below = used.map(|(&block, i)| {
            let start = span.start + i * each;
            match start < end {
                true => self.taken_in(inode, block, start..start + each, end, left),
                false => 0,
            }
        });
        1 + below.sum::<u64>()
    }

    /// Returns the attributes of an inode; [`Attr::change`] is the caller's.
    ///
    /// # Errors
    /// `Stale` for inode 0; `Corrupt` for one that makes no sense.
    pub(crate) fn attr(&self, inode: &Inode) -> Result<Attr> {
        let kind = inode.kind().ok_or(Kind::Corrupt)?;
        let [atime, mtime, ctime] = inode.times;
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        Ok(Attr {
            node: inode.id()?,
            kind,
            mode: u32::from(inode.mode & 0o7777),
            nlink: inode.nlink.into(),
            uid: inode.uid.into(),
            gid: inode.gid.into(),
            rdev: inode.rdev(),
            size: if is_device { 0 } else { inode.size },
            allocated: self.taken(inode) * self.volume.bsize,
            io_size: u32::try_from(self.volume.bsize.max(4096)).unwrap_or(4096),
            atime,
            mtime,
            ctime,
            btime: None,
            change: 0,
            dos: None,
        })
    }
}

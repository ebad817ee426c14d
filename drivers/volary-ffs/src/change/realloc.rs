//! Moves blocks into clusters before they are written: `ffs_reallocblks` of 4.4BSD
//! (Seltzer and others, "File System Logging Versus Clustering: A Performance Comparison", 1995;
//! clusters themselves: McVoy and Kleiman, "Extent-like Performance from a UNIX File System",
//! 1991).
//!
//! The allocators see one block at a time, and do not know how long a file becomes. On a fragmented
//! volume, or beside another file that grows, consecutive blocks of a file are not consecutive on
//! the disk.
//!
//! Blocks that were allocated in this epoch can be moved without risk, because nothing on the disk
//! leads to them. Once all of them are known, a free cluster can be searched for. This happens when
//! a write fills the last block of a cluster or brings all of its new blocks at once, so that
//! nothing is copied. The rest is moved at the commit.

use crate::change::bmap::Map;
use crate::change::edit::Step;
use crate::change::epoch::ADDITIONS;
use crate::disk::ondisk::UFS_NDADDR;
use crate::disk::volume::Volume;
use crate::groups::mistakes::{Mistake, made};
use std::collections::BTreeSet;
use std::ops::Range;
use volary_core::{FileKind, Result};

/// Consecutive new blocks of a file.
struct Row {
    lbn: u64,
    /// The first fragment of each block.
    places: Vec<u64>,
}

impl Row {
    /// Returns the number of blocks in each piece. A piece is a run of blocks that are consecutive
    /// on the disk too.
    fn pieces(&self, frag: u64) -> Vec<usize> {
        let pieces = self.places.chunk_by(|a, b| a + frag == *b);
        pieces.map(<[u64]>::len).collect()
    }
}

/// The clusters of a file.
pub(crate) struct Clusters<'e, 'a> {
    pub(crate) map: Map<'e, 'a>,
    /// Clusters to look at again, of all files: see [`Epoch`](crate::change::epoch::Epoch).
    pub(crate) scattered: &'e mut BTreeSet<(u32, u64)>,
}

impl<'a> Clusters<'_, 'a> {
    fn volume(&self) -> &'a Volume {
        self.map.volume()
    }

    /// Returns the range of blocks that should form one cluster with `lbn`.
    fn cluster(&self, lbn: u64) -> Option<Range<u64>> {
        self.map.room.policy().cluster(self.volume(), lbn)
    }

    /// Notes that block `lbn` was put at `first`, with the block before it at `before`. If the two
    /// are not adjacent, the cluster is looked at again.
    pub(crate) fn note_place(&mut self, lbn: u64, before: Option<u64>, first: u64) {
        if before.is_some_and(|before| before + self.volume().frag == first) {
            return;
        }
        if let Some(cluster) = self.cluster(lbn)
            && cluster.start < lbn
        {
            self.scattered.insert((self.map.ino, cluster.start));
        }
    }

    /// Moves clusters during a write of bytes `put` of a file, before the bytes reach their blocks.
    /// It moves the blocks of each cluster that the write fills, and those that the write brings as
    /// a whole.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn realloc_written(&mut self, put: &Range<u64>) -> Step<()> {
        let bsize = self.volume().bsize;
        let mut lbn = put.start / bsize;
        while lbn * bsize < put.end && !self.scattered.is_empty() {
            let Some(cluster) = self.cluster(lbn) else {
                return Ok(());
            };
            lbn = cluster.end;
            if !self.scattered.contains(&(self.map.ino, cluster.start)) {
                continue;
            }
            let is_filled = put.end >= cluster.end * bsize;
            for row in self.rows(cluster.clone())? {
                if is_filled || put.start <= row.lbn * bsize {
                    self.realloc_row(row, put)?;
                }
            }
            if is_filled {
                self.scattered.remove(&(self.map.ino, cluster.start));
            }
        }
        Ok(())
    }

    /// Moves the blocks of the cluster that begins with block `lbn` of a file, if the file still
    /// has them.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn realloc(&mut self, lbn: u64) -> Step<()> {
        let node = self.map.edit.nodes().get(self.map.ino);
        let is_file = node.is_some_and(|node| node.mem.kind() == Some(FileKind::File));
        let Some(cluster) = self.cluster(lbn).filter(|_| is_file) else {
            return Ok(());
        };
        for row in self.rows(cluster)? {
            self.realloc_row(row, &(0..0))?;
        }
        Ok(())
    }

    /// Returns the rows of whole new blocks in a range of a file.
    fn rows(&mut self, blocks: Range<u64>) -> Step<Vec<Row>> {
        let volume = self.volume();
        let inode = self.map.inode()?;
        let end = blocks.end.min(inode.size.div_ceil(volume.bsize));
        let mut rows: Vec<Row> = Vec::new();
        for lbn in blocks.start..end {
            let place = self.map.pointer(lbn)?;
            let is_new = self.map.room.is_fresh(place) || made(Mistake::NamedBlocksMove);
            if place == 0 || !is_new || inode.block_len(volume, lbn) < volume.bsize {
                continue;
            }
            match rows.last_mut() {
                Some(row) if row.lbn + row.places.len() as u64 == lbn => row.places.push(place),
                _ => rows.push(Row {
                    lbn,
                    places: vec![place],
                }),
            }
        }
        Ok(rows)
    }

    /// Moves the blocks of a row into a cluster. If no cluster is long enough, it moves as many
    /// pieces as fit, and then the rest, so that the number of pieces never grows.
    ///
    /// Unlike in 4.4BSD, blocks in two different groups are moved too. A cluster belongs to one
    /// section, and a section leaves its group only when the group is full.
    ///
    /// A row in two pieces stays if it ends in a reservation longer than a cluster: the file left a
    /// place where it could not grow, and grows on here. The direct blocks are always to be one
    /// cluster.
    fn realloc_row(&mut self, mut row: Row, put: &Range<u64>) -> Step<()> {
        let last = row.places.last().copied().unwrap_or(0);
        let cluster = self.map.room.policy().cluster_max(self.volume());
        if row.lbn >= UFS_NDADDR
            && row.pieces(self.volume().frag).len() == 2
            && self.map.room.is_in_row(self.map.ino, last, cluster)
        {
            return Ok(());
        }
        loop {
            let pieces = row.pieces(self.volume().frag);
            let Some((&first, [_, ..])) = pieces.split_first() else {
                return Ok(());
            };
            let mut moved = None;
            for most in (2..=pieces.len()).rev() {
                let count = pieces.iter().take(most).sum();
                if self.move_to_cluster(&row, count, put)? {
                    moved = Some(count);
                    break;
                }
            }
            let done = moved.unwrap_or(first);
            row.lbn += done as u64;
            row.places.drain(..done);
        }
    }

    /// Moves the first `count` blocks of a row into a cluster. Returns false if there is no free
    /// one. Blocks wholly within bytes `put` of the file are not copied: they have no content yet.
    fn move_to_cluster(&mut self, row: &Row, count: usize, put: &Range<u64>) -> Step<bool> {
        let (volume, lbn) = (self.volume(), row.lbn);
        let before = self.map.pointer_before(lbn)?;
        let first = row.places.first().copied().unwrap_or(0);
        let wish = self
            .map
            .room
            .policy()
            .of_cluster(volume, self.map.ino, lbn, before, first);
        let Some(cluster) = self.map.room.take_cluster(count as u64, wish)? else {
            return Ok(false);
        };
        for ((&from, lbn), i) in row.places.iter().zip(lbn..).zip(0..).take(count) {
            let to = cluster + i * volume.frag;
            let start = lbn * volume.bsize;
            if start < put.start || put.end < start + volume.bsize {
                self.copy_block(from, to)?;
            }
            if !made(Mistake::PointerStays) {
                self.map.set_pointer(lbn, to)?;
            }
            self.map.room.leave_block(from)?;
        }
        Ok(true)
    }

    /// Copies the content of a block to another.
    fn copy_block(&self, from: u64, to: u64) -> Result<()> {
        let volume = self.volume();
        let mut content = vec![0; usize::try_from(volume.bsize).unwrap_or(0)];
        self.map
            .reader()
            .cache
            .read_once(from * volume.fsize, &mut content)?;
        let to = to * volume.fsize;
        if made(Mistake::ContentStays) {
            return Ok(());
        }
        match made(Mistake::ContentComesLate) {
            true => self.map.reader().cache.write(to, &content, ADDITIONS),
            false => self.map.edit.write_content(to, &content),
        }
    }
}

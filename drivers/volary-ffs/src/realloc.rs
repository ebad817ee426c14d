//! Blocks are moved into clusters before they are written: `ffs_reallocblks` of 4.4BSD
//! (Seltzer and others, "File System Logging Versus Clustering: A Performance Comparison", 1995;
//! clusters themselves: McVoy and Kleiman, "Extent-like Performance from a UNIX File System",
//! 1991).
//!
//! The allocators see one block at a time, and do not know how long a file becomes: on a
//! volume with holes, or beside another file that grows, blocks that follow each other in a
//! file do not on the disk. Blocks that were taken in this epoch, which nothing on the disk
//! leads to, can be moved at no risk, and with all of them known a free cluster can be asked for:
//! when a write fills the last block of a cluster, or brings all of its new blocks at once, so that
//! nothing is copied; and for the rest with the commit.

use crate::alloc::Run;
use crate::commit::ADDITIONS;
use crate::edit::{Edit, Step};
use crate::mistakes::{Mistake, made};
use crate::ondisk::UFS_NDADDR;
use crate::policy;
use std::ops::Range;
use volary_core::{FileKind, Result};

/// New blocks of a file that follow each other in it.
struct Row {
    lbn: u64,
    /// Where each is: its first fragment.
    places: Vec<u64>,
}

impl Row {
    /// Returns how many blocks at its start are in each piece, a piece being blocks that follow each
    /// other on the disk too.
    fn pieces(&self, frag: u64) -> Vec<usize> {
        let pieces = self.places.chunk_by(|a, b| a + frag == *b);
        pieces.map(<[u64]>::len).collect()
    }
}

impl Edit<'_> {
    /// Notes where block `lbn` was put, with the block before it at `before`: if it is not
    /// behind that one, its cluster is looked at again.
    pub(crate) fn note_place(&mut self, ino: u32, lbn: u64, before: Option<u64>, first: u64) {
        if before.is_some_and(|before| before + self.volume.frag == first) {
            return;
        }
        if let Some(cluster) = policy::cluster(self.volume, &self.alloc.policy, lbn)
            && cluster.start < lbn
        {
            self.epoch.scattered.insert((ino, cluster.start));
        }
    }

    /// In the course of a write of bytes `put` of a file, before they are put where they
    /// belong: moves the blocks of each cluster that the write fills, and those that it
    /// brings as a whole.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn realloc_written(&mut self, ino: u32, put: &Range<u64>) -> Step<()> {
        let bsize = self.volume.bsize;
        let mut lbn = put.start / bsize;
        while lbn * bsize < put.end && !self.epoch.scattered.is_empty() {
            let Some(cluster) = policy::cluster(self.volume, &self.alloc.policy, lbn) else {
                return Ok(());
            };
            lbn = cluster.end;
            if !self.epoch.scattered.contains(&(ino, cluster.start)) {
                continue;
            }
            let is_filled = put.end >= cluster.end * bsize;
            for row in self.rows(ino, cluster.clone())? {
                if is_filled || put.start <= row.lbn * bsize {
                    self.realloc_row(ino, row, put)?;
                }
            }
            if is_filled {
                self.epoch.scattered.remove(&(ino, cluster.start));
            }
        }
        Ok(())
    }

    /// Moves the blocks of the cluster that begins with block `lbn` of a file, if it is still
    /// there.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn realloc(&mut self, ino: u32, lbn: u64) -> Step<()> {
        let is_file = self
            .nodes
            .get(ino)
            .is_some_and(|node| node.mem.kind() == Some(FileKind::File));
        let Some(cluster) =
            policy::cluster(self.volume, &self.alloc.policy, lbn).filter(|_| is_file)
        else {
            return Ok(());
        };
        for row in self.rows(ino, cluster)? {
            self.realloc_row(ino, row, &(0..0))?;
        }
        Ok(())
    }

    /// Returns the rows of whole new blocks in a range of a file.
    fn rows(&mut self, ino: u32, blocks: Range<u64>) -> Step<Vec<Row>> {
        let volume = self.volume;
        let inode = self.inode(ino)?;
        let end = blocks.end.min(inode.size.div_ceil(volume.bsize));
        let mut rows: Vec<Row> = Vec::new();
        for lbn in blocks.start..end {
            let place = self.pointer(ino, lbn)?;
            let is_new = self.alloc.is_fresh(place) || made(Mistake::NamedBlocksMove);
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

    /// Moves the blocks of a row into a cluster, or as many of its pieces as there is one for,
    /// and then the rest: there are never more pieces than before. Other than in 4.4BSD, blocks that came
    /// to be in two groups are moved too: a cluster is of one section, which leaves its group
    /// only when that is full.
    ///
    /// A row in two pieces stays if it ends where room is kept for more than a cluster: the file has
    /// left a place where it could not go on, and does go on here. But the direct blocks are to be
    /// one cluster.
    fn realloc_row(&mut self, ino: u32, mut row: Row, put: &Range<u64>) -> Step<()> {
        let last = row.places.last().copied().unwrap_or(0);
        let cluster = self.alloc.policy.cluster_max(self.volume);
        if row.lbn >= UFS_NDADDR
            && row.pieces(self.volume.frag).len() == 2
            && self.alloc.is_in_row(self.volume, ino, last, cluster)
        {
            return Ok(());
        }
        loop {
            let pieces = row.pieces(self.volume.frag);
            let Some((&first, [_, ..])) = pieces.split_first() else {
                return Ok(());
            };
            let mut moved = None;
            for most in (2..=pieces.len()).rev() {
                let count = pieces.iter().take(most).sum();
                if self.move_to_cluster(ino, &row, count, put)? {
                    moved = Some(count);
                    break;
                }
            }
            let done = moved.unwrap_or(first);
            row.lbn += done as u64;
            row.places.drain(..done);
        }
    }

    /// Moves the first `count` blocks of a row into a cluster; false if there is none. Those
    /// that lie in bytes `put` of the file have nothing in them yet.
    fn move_to_cluster(
        &mut self,
        ino: u32,
        row: &Row,
        count: usize,
        put: &Range<u64>,
    ) -> Step<bool> {
        let (volume, lbn) = (self.volume, row.lbn);
        let before = self.pointer_before(ino, lbn)?;
        let first = row.places.first().copied().unwrap_or(0);
        let wish = policy::of_cluster(volume, &self.alloc.policy, (ino, lbn), before, first);
        let Some(cluster) = self.take_cluster(count as u64, wish)? else {
            return Ok(false);
        };
        for ((&from, lbn), i) in row.places.iter().zip(lbn..).zip(0..).take(count) {
            let to = cluster + i * volume.frag;
            let start = lbn * volume.bsize;
            if start < put.start || put.end < start + volume.bsize {
                self.copy_block(from, to)?;
            }
            if !made(Mistake::PointerStays) {
                self.set_pointer(ino, lbn, to)?;
            }
            self.leave_block(from)?;
        }
        Ok(true)
    }

    /// Copies what is in a block to another.
    fn copy_block(&self, from: u64, to: u64) -> Result<()> {
        let volume = self.volume;
        let mut content = vec![0; usize::try_from(volume.bsize).unwrap_or(0)];
        self.cache.read_once(from * volume.fsize, &mut content)?;
        let to = to * volume.fsize;
        if made(Mistake::ContentStays) {
            return Ok(());
        }
        match made(Mistake::ContentComesLate) {
            true => self.cache.write(to, &content, ADDITIONS),
            false => self.put_data(to, &content),
        }
    }

    /// Gives back the place that a block was moved from.
    fn leave_block(&mut self, first: u64) -> Result<()> {
        let count = self.volume.frag;
        if made(Mistake::NamedBlocksMove) {
            return self.alloc.put_back(&self.reader(), Run { first, count });
        }
        if !made(Mistake::OldPlaceStays) {
            self.free(Run { first, count });
        }
        Ok(())
    }
}

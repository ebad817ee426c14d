//! What is free: the list in the superblock, which goes on in blocks of the list, and inodes.
//!
//! Blocks come from the list as the Seventh Edition takes them: the last of the superblock's
//! fifty; the first of these holds the next fifty, and is taken after them. What is given back goes
//! on top when the disk knows that nothing leads there any more. A map of what is in the list
//! keeps a block from being given twice.

use crate::disk::blocks::Reader;
use crate::disk::ondisk::{NICFREE, NICINOD, ROOT_INO, SUPER_AT};
use crate::disk::volume::Volume;
use std::collections::HashSet;
use volary_block::{Cache, Stage};
use volary_core::{Error, Kind, Result};

/// A set of numbers below a bound.
#[derive(Clone, Debug)]
pub(crate) struct Map(Vec<u64>);

impl Map {
    /// Returns an empty one for numbers below `end`.
    pub(crate) fn new(end: u64) -> Self {
        let words = usize::try_from(end.div_ceil(64)).unwrap_or(0);
        Self(vec![0; words])
    }

    pub(crate) fn has(&self, n: u64) -> bool {
        let word = usize::try_from(n / 64).ok().and_then(|at| self.0.get(at));
        word.is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    /// Adds or removes a number; returns whether that changed anything.
    pub(crate) fn set(&mut self, n: u64, is_in: bool) -> bool {
        let before = self.has(n);
        let at = usize::try_from(n / 64).unwrap_or(usize::MAX);
        let Some(word) = self.0.get_mut(at) else {
            return false;
        };
        let bit = 1 << (n % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
        before != is_in
    }
}

/// What is free.
pub(crate) struct Alloc {
    /// `s_free`: the next to be taken is the last.
    list: Vec<u32>,
    /// What is in all of the list.
    free: Map,
    free_count: u64,
    /// Given back since the last commit.
    pending: Vec<u32>,
    /// Taken since the last commit: nothing on the disk leads there.
    fresh: HashSet<u32>,
    /// `s_inode`: the next to be taken is the last.
    inodes: Vec<u32>,
    used: Map,
    free_inodes: u32,
    pending_inodes: Vec<u32>,
}

/// Reads a block of the free list.
///
/// # Errors
/// `Corrupt` if it can be none; `Io`.
pub(crate) fn chunk(reader: &Reader<'_>, block: u32) -> Result<Vec<u32>> {
    let volume = reader.volume;
    let mut bytes = [0; 512];
    let at = u64::from(block) * volume.bsize;
    reader.cache.read(at, &mut bytes)?;
    let count = usize::from(volume.order.get16(&bytes, 0));
    if count > NICFREE {
        let found = format!("{count} (block {block})");
        return Err(Error::corrupt("df_nfree", at, found, "50 at most"));
    }
    let start = volume.variant.chunk_free();
    let places = (0..count).map(|i| start + 4 * i);
    Ok(places.map(|at| volume.order.get32(&bytes, at)).collect())
}

/// Returns the bytes of a block of the free list.
fn chunk_bytes(volume: &Volume, list: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; volume.block_len()];
    let count = u16::try_from(list.len()).unwrap_or(0);
    volume.order.put16(&mut bytes, 0, count);
    let start = volume.variant.chunk_free();
    for (i, &block) in list.iter().enumerate() {
        volume.order.put32(&mut bytes, start + 4 * i, block);
    }
    bytes
}

/// Writes a free list of blocks, in the order in which they are to be taken; returns what is to be
/// in the superblock of it.
///
/// # Errors
/// `Io`.
pub(crate) fn write_list(cache: &Cache, volume: &Volume, blocks: &[u32]) -> Result<Vec<u32>> {
    let mut list = vec![0];
    for &block in blocks.iter().rev() {
        if list.len() == NICFREE {
            let at = u64::from(block) * volume.bsize;
            cache.write(at, &chunk_bytes(volume, &list), Stage::DATA)?;
            list.clear();
        }
        list.push(block);
    }
    Ok(list)
}

/// Gives `each` the blocks of the free list, in the order in which they would be taken. It ends
/// with as many as there are blocks.
///
/// # Errors
/// `Corrupt` for a list that leads elsewhere or round in a circle; `Io`; of `each`.
pub(crate) fn each_free(
    reader: &Reader<'_>,
    each: &mut dyn FnMut(u32) -> Result<()>,
) -> Result<()> {
    let data = reader.volume.data();
    let mut list = reader.volume.free_list();
    let mut count = 0;
    while let Some(block) = list.pop() {
        if block == 0 {
            break;
        }
        count += 1;
        if !data.contains(&block.into()) || count > data.end {
            let found = format!("block {block}");
            return Err(Error::corrupt(
                "free list",
                SUPER_AT,
                found,
                "blocks of data, each once",
            ));
        }
        if list.is_empty() {
            list = chunk(reader, block)?;
        }
        each(block)?;
    }
    Ok(())
}

impl Alloc {
    /// Returns what is free, by the list and the inodes.
    ///
    /// # Errors
    /// `Corrupt` for a list that makes no sense; `Io`.
    pub(crate) fn new(reader: &Reader<'_>) -> Result<Self> {
        let volume = reader.volume;
        let mut free = Map::new(volume.blocks);
        let mut free_count = 0;
        each_free(reader, &mut |block| {
            if !free.set(block.into(), true) {
                let found = format!("block {block} twice");
                let at = SUPER_AT;
                return Err(Error::corrupt("free list", at, found, "each block once"));
            }
            free_count += 1;
            Ok(())
        })?;
        let (used, free_inodes) = used_inodes(reader)?;
        let mut alloc = Self {
            list: volume.free_list(),
            free,
            free_count,
            pending: Vec::new(),
            fresh: HashSet::new(),
            inodes: Vec::new(),
            used,
            free_inodes,
            pending_inodes: Vec::new(),
        };
        let listed = volume.inode_list();
        for ino in listed.into_iter().map(u32::from) {
            if ino > ROOT_INO && !alloc.used.has(ino.into()) && !alloc.inodes.contains(&ino) {
                alloc.inodes.push(ino);
            }
        }
        Ok(alloc)
    }

    /// Returns blocks that are free.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.free_count + self.pending.len() as u64
    }

    /// Returns inodes that are free.
    pub(crate) fn free_inodes(&self) -> u32 {
        self.free_inodes + u32::try_from(self.pending_inodes.len()).unwrap_or(0)
    }

    /// Returns whether a commit gives room.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.pending_inodes.is_empty()
    }

    /// Returns how much was taken and given back since the last commit.
    pub(crate) fn held(&self) -> usize {
        self.pending.len() + self.fresh.len()
    }

    /// Returns whether nothing on the disk leads to a block.
    pub(crate) fn is_fresh(&self, block: u32) -> bool {
        self.fresh.contains(&block)
    }

    /// Takes the next block of the list.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self, reader: &Reader<'_>) -> Result<u32> {
        let block = self.list.last().copied().unwrap_or(0);
        if block == 0 {
            return Err(Kind::NoSpace.into());
        }
        if self.list.len() == 1 {
            self.list = chunk(reader, block)?;
        } else {
            self.list.pop();
        }
        if !self.free.set(block.into(), false) {
            let at = SUPER_AT;
            let found = format!("block {block}");
            return Err(Error::corrupt(
                "free list",
                at,
                found,
                "a block that is free",
            ));
        }
        self.free_count -= 1;
        self.fresh.insert(block);
        Ok(block)
    }

    /// Puts a block on top of the list.
    fn push(&mut self, reader: &Reader<'_>, block: u32) -> Result<()> {
        let volume = reader.volume;
        if self.list.len() >= NICFREE {
            let bytes = chunk_bytes(volume, &self.list);
            let at = u64::from(block) * volume.bsize;
            reader.cache.write(at, &bytes, Stage::DATA)?;
            self.list.clear();
        } else if self.list.is_empty() {
            self.list.push(0);
        }
        self.list.push(block);
        self.free.set(block.into(), true);
        self.free_count += 1;
        Ok(())
    }

    /// Puts a block back that was taken since the last commit, the last one taken first.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put_back(&mut self, reader: &Reader<'_>, block: u32) -> Result<()> {
        self.fresh.remove(&block);
        self.push(reader, block)
    }

    /// Notes that blocks are given back: they can be taken after the next commit.
    ///
    /// # Errors
    /// `Corrupt` for one that is free, or was given back before.
    pub(crate) fn give_back(&mut self, blocks: Vec<u32>) -> Result<()> {
        for block in blocks {
            // In the map, what was given back counts as free: it must not come twice.
            if !self.free.set(block.into(), true) {
                let at = SUPER_AT;
                let found = format!("block {block}, which is free");
                return Err(Error::corrupt("free list", at, found, "one that is in use"));
            }
            self.fresh.remove(&block);
            self.pending.push(block);
        }
        Ok(())
    }

    /// Takes an inode.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn take_inode(&mut self) -> Result<u32> {
        if self.inodes.is_empty() {
            self.fill_inodes();
        }
        let ino = self.inodes.pop().ok_or(Kind::NoSpace)?;
        self.used.set(ino.into(), true);
        self.free_inodes -= 1;
        Ok(ino)
    }

    /// Puts the lowest free inodes into the list: the very lowest is taken first.
    fn fill_inodes(&mut self) {
        let mut ino = ROOT_INO + 1;
        let last = self.last_inode();
        while ino <= last && self.inodes.len() < NICINOD {
            if !self.used.has(ino.into()) {
                self.inodes.push(ino);
            }
            ino += 1;
        }
        self.inodes.reverse();
    }

    fn last_inode(&self) -> u32 {
        let end = self.used.0.len() * 64;
        u32::try_from(end).unwrap_or(0).saturating_sub(1)
    }

    /// Puts an inode back that was taken.
    pub(crate) fn put_inode_back(&mut self, ino: u32) {
        self.used.set(ino.into(), false);
        self.free_inodes += 1;
        if self.inodes.len() < NICINOD {
            self.inodes.push(ino);
        }
    }

    /// Notes that an inode is given back: it can be taken after the next commit.
    pub(crate) fn give_inode_back(&mut self, ino: u32) {
        self.pending_inodes.push(ino);
    }

    /// The disk knows that nothing leads to what was given back: it is free now.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn settle(&mut self, reader: &Reader<'_>) -> Result<()> {
        for ino in std::mem::take(&mut self.pending_inodes) {
            self.put_inode_back(ino);
        }
        let pending = std::mem::take(&mut self.pending);
        // The first that was given back is the first to be taken.
        for block in pending.into_iter().rev() {
            self.push(reader, block)?;
        }
        self.fresh.clear();
        if self.inodes.is_empty() {
            self.fill_inodes();
        }
        Ok(())
    }

    /// Brings the lists and totals into a superblock.
    pub(crate) fn store(&self, volume: &Volume, head: &mut [u8]) {
        store_lists(volume, head, &self.list, &self.inodes);
        store_totals(volume, head, self.free_blocks(), self.free_inodes().into());
    }
}

/// Returns which inodes are in use, and how many are not. What lies past the last counts as used.
fn used_inodes(reader: &Reader<'_>) -> Result<(Map, u32)> {
    let volume = reader.volume;
    let end = u64::from(volume.inodes) + 1;
    let mut used = Map::new(end);
    let mut free = 0;
    for ino in 0..end.next_multiple_of(64) {
        let is_free = ino > ROOT_INO.into() && ino < end && {
            let mut mode = [0; 2];
            let number = u32::try_from(ino).unwrap_or(0);
            reader.cache.read(volume.inode_at(number), &mut mode)?;
            mode == [0; 2]
        };
        free += u32::from(is_free);
        used.set(ino, !is_free);
    }
    Ok((used, free))
}

/// Brings `s_free` and `s_inode` into a superblock.
pub(crate) fn store_lists(volume: &Volume, head: &mut [u8], free: &[u32], inodes: &[u32]) {
    let (order, fields) = (volume.order, volume.variant.fields());
    order.put16(head, fields.nfree, u16::try_from(free.len()).unwrap_or(0));
    for i in 0..NICFREE {
        let block = free.get(i).copied().unwrap_or(0);
        order.put32(head, fields.free + 4 * i, block);
    }
    order.put16(
        head,
        fields.ninode,
        u16::try_from(inodes.len()).unwrap_or(0),
    );
    for i in 0..NICINOD {
        let ino = inodes.get(i).and_then(|&ino| u16::try_from(ino).ok());
        order.put16(head, fields.inode + 2 * i, ino.unwrap_or(0));
    }
}

/// Brings `s_tfree` and `s_tinode`, the free blocks and inodes, into a superblock.
pub(crate) fn store_totals(volume: &Volume, head: &mut [u8], blocks: u64, inodes: u64) {
    let (order, fields) = (volume.order, volume.variant.fields());
    order.put32(
        head,
        fields.tfree,
        u32::try_from(blocks).unwrap_or(u32::MAX),
    );
    let inodes = u16::try_from(inodes).unwrap_or(u16::MAX);
    order.put16(head, fields.tinode, inodes);
}

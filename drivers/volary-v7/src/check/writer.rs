//! Mends what a round found.

use super::inodes::Inodes;
use super::plan::{Fix, Plan, Put};
use crate::change::alloc::{store_lists, store_totals, write_list};
use crate::disk::blocks::Reader;
use crate::disk::dir;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{ENTRY_LEN, INODE_LEN, NICINOD, ROOT_INO};
use volary_block::Stage;
use volary_core::Result;

/// Writes, and counts the sectors.
pub(super) struct Writer<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) written: u64,
    /// Where the search for a block without an owner goes on.
    next: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(reader: Reader<'a>) -> Self {
        Self {
            reader,
            written: 0,
            next: reader.volume.first,
        }
    }

    /// Writes bytes; they are durable after [`settle`](Self::settle).
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.written += (bytes.len() as u64).div_ceil(512);
        self.reader.cache.write(at, bytes, Stage::DATA)
    }

    pub(super) fn settle(&self) -> Result<()> {
        self.reader.cache.commit()
    }

    /// Mends inodes and names.
    pub(super) fn structures(&mut self, plan: &Plan, inodes: &mut Inodes) -> Result<()> {
        for (&ino, fix) in &plan.inodes {
            let mut inode = self.reader.inode_as_it_is(ino.into())?;
            self.fix(&mut inode, fix, inodes)?;
            let bytes: [u8; INODE_LEN] = inode.bytes(self.reader.volume);
            self.put(inode.at, &bytes)?;
        }
        for &(place, put) in &plan.addresses {
            let block = self.resolve(put, inodes)?;
            let bytes = self.reader.volume.order.bytes32(block);
            self.put(place, &bytes)?;
        }
        for (place, bytes) in &plan.entries {
            self.put(*place, bytes)?;
        }
        Ok(())
    }

    fn fix(&mut self, inode: &mut Inode, fix: &Fix, inodes: &mut Inodes) -> Result<()> {
        let volume = self.reader.volume;
        if fix.free {
            *inode = Inode::free(volume, inode.ino, inode.generation);
            return Ok(());
        }
        inode.mode = fix.mode.unwrap_or(inode.mode);
        inode.size = fix.size.unwrap_or(inode.size);
        inode.nlink = fix.links.unwrap_or(inode.nlink);
        for (&slot, &put) in &fix.addresses {
            let block = self.resolve(put, inodes)?;
            if let Some(address) = inode.addr.get_mut(slot) {
                *address = block;
            }
        }
        if let Some(parent) = fix.dots {
            self.dots(inode, parent, inodes)?;
        }
        Ok(())
    }

    /// A first block for a directory; without room for one, it is freed.
    fn dots(&mut self, inode: &mut Inode, parent: u32, inodes: &mut Inodes) -> Result<()> {
        let volume = self.reader.volume;
        let Some(block) = self.room(inodes) else {
            *inode = Inode::free(volume, inode.ino, inode.generation);
            return Ok(());
        };
        let mut bytes = vec![0; volume.block_len()];
        let dots = [(inode.ino, &b"."[..]), (parent, b"..")];
        let dots = dots.map(|(ino, name)| dir::bytes(volume, ino, name));
        if let Some(room) = bytes.get_mut(..2 * ENTRY_LEN) {
            room.copy_from_slice(dots.as_flattened());
        }
        self.put(u64::from(block) * volume.bsize, &bytes)?;
        if let Some(address) = inode.addr.first_mut() {
            *address = block;
        }
        inode.size = inode.size.max(2 * ENTRY_LEN as u64);
        Ok(())
    }

    fn resolve(&mut self, put: Put, inodes: &mut Inodes) -> Result<u32> {
        let Put::Copy(of) = put else {
            return Ok(0);
        };
        let Some(block) = self.room(inodes) else {
            return Ok(0);
        };
        let bsize = self.reader.volume.bsize;
        let mut bytes = vec![0; self.reader.volume.block_len()];
        self.reader.cache.read(u64::from(of) * bsize, &mut bytes)?;
        self.put(u64::from(block) * bsize, &bytes)?;
        Ok(block)
    }

    /// Returns a block that nobody has.
    fn room(&mut self, inodes: &mut Inodes) -> Option<u32> {
        let end = self.reader.volume.blocks;
        while self.next < end {
            let block = self.next;
            self.next += 1;
            if inodes.owned.set(block, true) {
                return u32::try_from(block).ok();
            }
        }
        None
    }

    /// Makes the lists and totals of a superblock anew.
    pub(super) fn lists(&mut self, inodes: &Inodes, head: &mut [u8]) -> Result<()> {
        let volume = self.reader.volume;
        let blocks: Vec<u32> = volume
            .data()
            .filter(|&block| !inodes.owned.has(block))
            .filter_map(|block| u32::try_from(block).ok())
            .collect();
        let list = write_list(self.reader.cache, volume, &blocks)?;
        self.written += blocks.len() as u64 / 50;
        let free = (ROOT_INO + 1..=volume.inodes).filter(|ino| !inodes.all.contains_key(ino));
        let mut some: Vec<u32> = free.take(NICINOD).collect();
        some.reverse();
        store_lists(volume, head, &list, &some);
        store_totals(volume, head, blocks.len() as u64, inodes.free().into());
        Ok(())
    }
}

//! Reads blocks, group descriptors and inodes, each checked.

use crate::csum;
use crate::fast::Fast;
use crate::inode::Inode;
use crate::journal::Replayed;
use crate::ondisk::{DESC_CHECKSUM, GroupDesc, group, iflag, ro_compat};
use crate::volume::Volume;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{BlockDevice, Error, Kind, NodeId, Result};
use zerocopy::FromBytes;

/// A volume and the device that it is on, with what its journal holds.
pub(crate) struct Store {
    pub(crate) cache: Cache,
    pub(crate) volume: Volume,
    /// Blocks whose newest contents are in the journal.
    pub(crate) replayed: Option<Arc<Replayed>>,
    /// What fast commits changed after that.
    pub(crate) fast: Fast,
    /// The group whose descriptor was checked last: inodes that are looked at one after the other
    /// are mostly in one group.
    pub(crate) last: Mutex<Option<(u32, Group)>>,
}

/// A group, as its descriptor has it.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    pub(crate) free_clusters: u64,
    pub(crate) free_inodes: u64,
    pub(crate) dirs: u64,
    /// Inodes at the end of the table that were never used.
    pub(crate) unused: u32,
    pub(crate) flags: u16,
    pub(crate) block_bitmap_csum: u32,
    pub(crate) inode_bitmap_csum: u32,
    /// Where the descriptor stands, in bytes.
    pub(crate) at: u64,
}

impl Group {
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Returns a cache for reading.
pub(crate) fn cache(dev: Arc<dyn BlockDevice>, memory: u64) -> Cache {
    let io_size = 64 << 10;
    Cache::new(dev, CacheOptions { memory, io_size })
}

impl Store {
    /// Returns a volume whose journal is not looked at.
    pub(crate) fn plain(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Self {
        Self {
            cache: cache(dev, memory),
            volume,
            replayed: None,
            fast: Fast::default(),
            last: Mutex::default(),
        }
    }

    /// # Errors
    /// `Corrupt`, naming `what`, if a part of the range is not on the volume and its device.
    pub(crate) fn check_blocks(
        &self,
        what: &'static str,
        at: u64,
        first: u64,
        count: u64,
    ) -> Result<()> {
        let there = self.volume.there();
        let is_inside = first >= self.volume.first_data_block
            && first.checked_add(count).is_some_and(|end| end <= there);
        if is_inside {
            return Ok(());
        }
        let found = format!("{count} blocks at {first}");
        let expected = format!("inside of {} to {there}", self.volume.first_data_block);
        Err(Error::corrupt(what, at, found, expected))
    }

    /// Reads a block. `what` names it, `at` where its number stands.
    ///
    /// # Errors
    /// `Corrupt` for a number past the end; `Io`.
    pub(crate) fn block(&self, what: &'static str, at: u64, number: u64) -> Result<Vec<u8>> {
        self.check_blocks(what, at, number, 1)?;
        self.bytes(number * self.volume.block, self.volume.block as usize)
    }

    fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.cache.read(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Compares a checksum, unless they are not looked at.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn verify(&self, what: &'static str, at: u64, stored: u32, sum: u32) -> Result<()> {
        if sum == stored || !self.volume.is_verified {
            return Ok(());
        }
        let (found, expected) = (format!("{stored:#x}"), format!("{sum:#x}"));
        Err(Error::corrupt(what, at, found, expected))
    }

    /// Returns a group as its own descriptor has it, or, if that is damaged, as a replica has it.
    ///
    /// # Errors
    /// `Corrupt` if no replica is right either; `Io`.
    pub(crate) fn group(&self, number: u32) -> Result<Group> {
        match self.own_group(number) {
            Err(e) if e == Kind::Corrupt => self.replica_of_group(number)?.ok_or(e),
            group => group,
        }
    }

    /// Returns a group as its own descriptor has it.
    ///
    /// # Errors
    /// `Corrupt` for a wrong checksum, or a structure that is not on the volume; `Io`.
    pub(crate) fn own_group(&self, number: u32) -> Result<Group> {
        let (group, bytes) = self.group_unchecked(number)?;
        self.verify_group(number, group.at, &bytes)?;
        self.check_places(&group)?;
        Ok(group)
    }

    /// Returns a group as the first replica of its descriptor that is right has it. Linux does not keep counts and flags
    /// of replicas up to date: every inode of the group may be in use then.
    fn replica_of_group(&self, number: u32) -> Result<Option<Group>> {
        for block in self.volume.desc_replicas(number) {
            let Ok((group, bytes)) = self.group_in(number, block) else {
                continue;
            };
            let is_right = self.verify_group(number, group.at, &bytes).is_ok();
            if is_right && self.check_places(&group).is_ok() {
                return Ok(Some(Group {
                    flags: 0,
                    unused: 0,
                    ..group
                }));
            }
        }
        Ok(None)
    }

    /// Checks that a group's structures are on the volume, behind its superblock.
    fn check_places(&self, group: &Group) -> Result<()> {
        let first = self.volume.super_block() + 1;
        for (what, block) in [
            ("bg_block_bitmap", group.block_bitmap),
            ("bg_inode_bitmap", group.inode_bitmap),
            ("bg_inode_table", group.inode_table),
        ] {
            if !(first..self.volume.blocks).contains(&block) {
                let expected = format!("{first} to {}", self.volume.blocks);
                return Err(Error::corrupt(what, group.at, block.to_string(), expected));
            }
        }
        Ok(())
    }

    /// Returns a descriptor whose checksum nobody looked at, and its bytes.
    ///
    /// # Errors
    /// As [`group`](Self::group).
    pub(crate) fn group_unchecked(&self, number: u32) -> Result<(Group, Vec<u8>)> {
        self.group_in(number, self.volume.desc_block(number))
    }

    /// Reads the descriptor of a group from `block`, which holds it or a replica of it.
    fn group_in(&self, number: u32, block: u64) -> Result<(Group, Vec<u8>)> {
        let volume = &self.volume;
        let within = u64::from(number) % volume.descs_per_block() * volume.desc_size as u64;
        let at = block.saturating_mul(volume.block).saturating_add(within);
        self.check_blocks("group descriptor", at, block, 1)?;
        let bytes = self.bytes(at, volume.desc_size)?;
        let mut whole = [0; size_of::<GroupDesc>()];
        for (to, from) in whole.iter_mut().zip(&bytes) {
            *to = *from;
        }
        let raw = GroupDesc::read_from_bytes(&whole).map_err(|_| Error::from(Kind::Corrupt))?;
        Ok((group_of(&raw, at), bytes))
    }

    /// Verifies a descriptor's checksum (checksums.rst), of either kind.
    fn verify_group(&self, number: u32, at: u64, bytes: &[u8]) -> Result<()> {
        let volume = &self.volume;
        let part = |range| bytes.get(range).unwrap_or_default();
        let (before, after) = (part(0..DESC_CHECKSUM), part(DESC_CHECKSUM + 2..bytes.len()));
        let stored = match part(DESC_CHECKSUM..DESC_CHECKSUM + 2) {
            &[low, high] => u16::from_le_bytes([low, high]),
            _ => 0,
        };
        let sum = if volume.has_sums() {
            let sum = csum::crc32c(volume.seed, &number.to_le_bytes());
            let sum = csum::crc32c(csum::crc32c(sum, before), &[0; 2]);
            csum::crc32c(sum, after) & 0xffff
        } else if volume.has_ro(ro_compat::GDT_CSUM) {
            let sum = csum::crc16(!0, &volume.raw.s_uuid);
            let sum = csum::crc16(sum, &number.to_le_bytes());
            csum::crc16(csum::crc16(sum, before), after).into()
        } else {
            return Ok(());
        };
        self.verify("bg_checksum", at, stored.into(), sum)
    }

    fn group_of_inodes(&self, number: u32) -> Result<Group> {
        if let Some((last, group)) = *self.last.lock()
            && last == number
        {
            return Ok(group);
        }
        let group = self.group(number)?;
        *self.last.lock() = Some((number, group));
        Ok(group)
    }

    /// Returns where an inode stands, in bytes.
    ///
    /// # Errors
    /// `Stale` for a number that no inode has; `Corrupt`; `Io`.
    pub(crate) fn inode_at(&self, ino: u32) -> Result<u64> {
        let volume = &self.volume;
        let index = ino.checked_sub(1).filter(|index| *index < volume.inodes);
        let index = index.ok_or(Kind::Stale)?;
        let group = self.group_of_inodes(index / volume.inodes_per_group)?;
        self.inode_in(&group, index % volume.inodes_per_group)
    }

    /// Returns where the inode of this index in a group's table stands, in bytes.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn inode_in(&self, group: &Group, index: u32) -> Result<u64> {
        let volume = &self.volume;
        let within = u64::from(index) * volume.inode_size as u64;
        let block = group.inode_table.saturating_add(within / volume.block);
        self.check_blocks("bg_inode_table", group.at, block, 1)?;
        Ok(block * volume.block + within % volume.block)
    }

    /// Returns an inode, used or not.
    ///
    /// # Errors
    /// As [`inode_at`](Self::inode_at); `Corrupt` for a wrong checksum.
    pub(crate) fn inode(&self, ino: u32) -> Result<Inode> {
        let inode = self.inode_unchecked(ino, self.inode_at(ino)?)?;
        self.verify_inode(&inode)?;
        Ok(inode)
    }

    /// Returns the inode that stands at `at`, whose checksum nobody looked at.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn inode_unchecked(&self, ino: u32, at: u64) -> Result<Inode> {
        let mut bytes = self.bytes(at, self.volume.inode_size)?;
        let is_fast = self.fast.change_inode(ino, &mut bytes);
        Inode::of(&self.volume, ino, at, bytes, is_fast)
    }

    /// # Errors
    /// `Corrupt` for a wrong checksum. One that was never used, or that a fast commit wrote, has none.
    pub(crate) fn verify_inode(&self, inode: &Inode) -> Result<()> {
        if !self.volume.verifies() || inode.is_fast || inode.raw.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let (stored, sum) = inode.sums();
        self.verify("i_checksum", inode.at, stored, sum)
    }

    /// Reads the inode of a node. Reserved inodes, which no path leads to, are `Stale`.
    ///
    /// # Errors
    /// `Stale` for one that is gone, or that was never one; `Corrupt`; `Io`.
    pub(crate) fn node(&self, id: NodeId) -> Result<Inode> {
        let ino = u32::try_from(id.ino.get()).map_err(|_| Kind::Stale)?;
        let inode = self.node_of(ino)?;
        match inode.head.i_generation.get() == id.generation {
            true => Ok(inode),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Reads the inode of a node by its number, whatever its generation.
    ///
    /// # Errors
    /// As [`node`](Self::node).
    pub(crate) fn node_of(&self, ino: u32) -> Result<Inode> {
        if self.volume.is_hidden(ino) {
            return Err(Kind::Stale.into());
        }
        let inode = self.inode(ino)?;
        if inode.head.i_links_count.get() == 0 || inode.has(iflag::EA_INODE) {
            return Err(Kind::Stale.into());
        }
        inode.known_kind()?;
        inode.check_size(&self.volume)?;
        Ok(inode)
    }

    /// Free clusters and inodes, as the groups count them.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free(&self) -> Result<(u64, u64)> {
        let (mut clusters, mut inodes) = (0u64, 0u64);
        for number in 0..self.volume.groups {
            let group = self.group(number)?;
            clusters = clusters.saturating_add(group.free_clusters);
            inodes = inodes.saturating_add(group.free_inodes);
        }
        Ok((clusters, inodes))
    }

    /// Returns how many inodes at the start of a group's table may be in use.
    pub(crate) fn inodes_used_in(&self, number: u32, group: &Group) -> u32 {
        let volume = &self.volume;
        let before = number.saturating_mul(volume.inodes_per_group);
        let there = volume
            .inodes_per_group
            .min(volume.inodes.saturating_sub(before));
        let has_flags = volume.has_sums() || volume.has_ro(ro_compat::GDT_CSUM);
        match has_flags {
            false => there,
            true if group.has(group::INODE_UNINIT) => 0,
            true => there.min(volume.inodes_per_group.saturating_sub(group.unused)),
        }
    }
}

pub(crate) fn group_of(raw: &GroupDesc, at: u64) -> Group {
    let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let two = |low: u16, high: u16| u32::from(high) << 16 | u32::from(low);
    Group {
        block_bitmap: wide(raw.bg_block_bitmap_lo.get(), raw.bg_block_bitmap_hi.get()),
        inode_bitmap: wide(raw.bg_inode_bitmap_lo.get(), raw.bg_inode_bitmap_hi.get()),
        inode_table: wide(raw.bg_inode_table_lo.get(), raw.bg_inode_table_hi.get()),
        free_clusters: two(
            raw.bg_free_blocks_count_lo.get(),
            raw.bg_free_blocks_count_hi.get(),
        )
        .into(),
        free_inodes: two(
            raw.bg_free_inodes_count_lo.get(),
            raw.bg_free_inodes_count_hi.get(),
        )
        .into(),
        dirs: two(
            raw.bg_used_dirs_count_lo.get(),
            raw.bg_used_dirs_count_hi.get(),
        )
        .into(),
        unused: two(raw.bg_itable_unused_lo.get(), raw.bg_itable_unused_hi.get()),
        flags: raw.bg_flags.get(),
        block_bitmap_csum: two(
            raw.bg_block_bitmap_csum_lo.get(),
            raw.bg_block_bitmap_csum_hi.get(),
        ),
        inode_bitmap_csum: two(
            raw.bg_inode_bitmap_csum_lo.get(),
            raw.bg_inode_bitmap_csum_hi.get(),
        ),
        at,
    }
}

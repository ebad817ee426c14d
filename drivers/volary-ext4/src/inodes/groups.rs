//! Group descriptors, each checked, and the inode tables that they lead to.

use crate::disk::blocks::Blocks;
use crate::disk::csum;
use crate::disk::group::Group;
use crate::disk::ondisk::{DESC_CHECKSUM, GroupDesc, group, ro_compat};
use parking_lot::Mutex;
use volary_core::{Error, Kind, Result};
use zerocopy::FromBytes;

/// The groups of a volume, and the blocks that they are on.
pub(crate) struct Groups {
    blocks: Blocks,
    /// The group whose descriptor was checked last: inodes that are looked at one after the other
    /// are mostly in one group.
    last: Mutex<Option<(u32, Group)>>,
}

impl Groups {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self {
            blocks,
            last: Mutex::default(),
        }
    }

    /// Returns the blocks that the descriptors are in.
    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
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
        for block in self.blocks.volume().desc_replicas(number) {
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
        let first = self.blocks.volume().super_block() + 1;
        for (what, block) in [
            ("bg_block_bitmap", group.block_bitmap),
            ("bg_inode_bitmap", group.inode_bitmap),
            ("bg_inode_table", group.inode_table),
        ] {
            if !(first..self.blocks.volume().blocks).contains(&block) {
                let expected = format!("{first} to {}", self.blocks.volume().blocks);
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
        self.group_in(number, self.blocks.volume().desc_block(number))
    }

    /// Reads the descriptor of a group from `block`, which holds it or a replica of it.
    fn group_in(&self, number: u32, block: u64) -> Result<(Group, Vec<u8>)> {
        let volume = self.blocks.volume();
        let within = u64::from(number) % volume.descs_per_block() * volume.desc_size as u64;
        let at = block.saturating_mul(volume.block).saturating_add(within);
        self.blocks.check("group descriptor", at, block, 1)?;
        let bytes = self.blocks.bytes(at, volume.desc_size)?;
        let mut whole = [0; size_of::<GroupDesc>()];
        for (to, from) in whole.iter_mut().zip(&bytes) {
            *to = *from;
        }
        let raw = GroupDesc::read_from_bytes(&whole).map_err(|_| Error::from(Kind::Corrupt))?;
        Ok((Group::of(&raw, at), bytes))
    }

    /// Verifies a descriptor's checksum (checksums.rst), of either kind.
    fn verify_group(&self, number: u32, at: u64, bytes: &[u8]) -> Result<()> {
        let volume = self.blocks.volume();
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
        self.blocks.verify("bg_checksum", at, stored.into(), sum)
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
        let volume = self.blocks.volume();
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
        let volume = self.blocks.volume();
        let within = u64::from(index) * volume.inode_size as u64;
        let block = group.inode_table.saturating_add(within / volume.block);
        self.blocks.check("bg_inode_table", group.at, block, 1)?;
        Ok(block * volume.block + within % volume.block)
    }

    /// Free clusters and inodes, as the groups count them.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free(&self) -> Result<(u64, u64)> {
        let (mut clusters, mut inodes) = (0u64, 0u64);
        for number in 0..self.blocks.volume().groups {
            let group = self.group(number)?;
            clusters = clusters.saturating_add(group.free_clusters);
            inodes = inodes.saturating_add(group.free_inodes);
        }
        Ok((clusters, inodes))
    }

    /// Returns how many inodes at the start of a group's table may be in use.
    pub(crate) fn inodes_used_in(&self, number: u32, group: &Group) -> u32 {
        let volume = self.blocks.volume();
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

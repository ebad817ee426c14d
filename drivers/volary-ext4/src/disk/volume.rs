//! The superblock, checked: what is believed of a volume from then on.

use crate::disk::csum;
use crate::disk::ondisk::{
    DESC_LEN_32, INODE_HEAD, MAGIC, SUPERBLOCK, SUPERBLOCK_LEN, SuperBlock, compat, incompat,
    ro_compat,
};
use volary_core::{BlockDevice, Error, Kind, Result};
use zerocopy::{FromBytes, IntoBytes};

/// The first inode that is not reserved, where the superblock does not say.
const GOOD_OLD_FIRST_INO: u32 = 11;

/// Replicas of a descriptor that are looked at.
const REPLICAS: usize = 3;

/// Largest block, in bytes.
const BLOCK_MAX: u64 = 64 << 10;

/// A volume.
#[derive(Clone)]
pub(crate) struct Volume {
    /// As it is stored.
    pub(crate) raw: SuperBlock,
    /// Bytes of a block.
    pub(crate) block: u64,
    /// Blocks of the volume.
    pub(crate) blocks: u64,
    /// Bytes of the device.
    pub(crate) device: u64,
    /// Blocks of a cluster.
    pub(crate) cluster: u64,
    pub(crate) first_data_block: u64,
    pub(crate) blocks_per_group: u64,
    pub(crate) inodes_per_group: u32,
    pub(crate) inodes: u32,
    pub(crate) groups: u32,
    /// Bytes of an inode.
    pub(crate) inode_size: usize,
    /// Bytes of a group descriptor.
    pub(crate) desc_size: usize,
    pub(crate) first_ino: u32,
    /// What checksums of metadata begin with.
    pub(crate) seed: u32,
    /// Whether checksums are looked at.
    pub(crate) is_verified: bool,
}

/// Reads the superblock as it is stored; `None` if the magic is not there.
///
/// # Errors
/// `Io`.
pub(crate) fn look(dev: &dyn BlockDevice) -> Result<Option<SuperBlock>> {
    if dev.geometry().size < SUPERBLOCK + SUPERBLOCK_LEN as u64 {
        return Ok(None);
    }
    let mut bytes = [0; SUPERBLOCK_LEN];
    dev.read_at(SUPERBLOCK, &mut bytes)?;
    let raw = SuperBlock::read_from_bytes(&bytes).ok();
    Ok(raw.filter(|raw| raw.s_magic.get() == MAGIC))
}

/// Returns whether a superblock with the magic, which is short, makes sense as one besides.
pub(crate) fn is_likely(raw: &SuperBlock) -> bool {
    raw.s_log_block_size.get() <= 6
        && raw.s_rev_level.get() <= 1
        && [
            raw.s_blocks_per_group,
            raw.s_inodes_per_group,
            raw.s_inodes_count,
        ]
        .iter()
        .all(|count| count.get() != 0)
}

/// Returns which of the three systems the volume is, as its features say.
pub(crate) fn kind_of(raw: &SuperBlock) -> &'static str {
    const OF_EXT2: u32 = incompat::FILETYPE | incompat::META_BG;
    const RO_OF_EXT2: u32 = 0x7;
    let incompat = raw.s_feature_incompat.get();
    let is_old = raw.s_feature_ro_compat.get() & !RO_OF_EXT2 == 0;
    let has_journal = raw.s_feature_compat.get() & compat::HAS_JOURNAL != 0;
    if incompat & !(OF_EXT2 | incompat::RECOVER) != 0 || !is_old {
        "ext4"
    } else if has_journal {
        "ext3"
    } else {
        "ext2"
    }
}

impl Volume {
    /// Reads and checks the superblock.
    ///
    /// # Errors
    /// `Corrupt` naming the first field out of its range, and for a wrong checksum unless
    /// `is_verified` is false; `Unsupported` for a feature that is not known; `Io`.
    pub(crate) fn read(dev: &dyn BlockDevice, is_verified: bool) -> Result<Self> {
        let none = || bad("s_magic", 0x38, "another", "0xef53");
        let raw = look(dev)?.ok_or_else(none)?;
        Self::of(raw, dev.geometry().size, is_verified)
    }

    /// Checks a superblock.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported`.
    pub(crate) fn of(raw: SuperBlock, device: u64, is_verified: bool) -> Result<Self> {
        known_features(&raw)?;
        let has = |flag| raw.s_feature_ro_compat.get() & flag != 0;
        if is_verified && has(ro_compat::METADATA_CSUM) {
            check_sum(&raw)?;
        }
        let log = raw.s_log_block_size.get();
        let block = 1u64.checked_shl(log.saturating_add(10)).unwrap_or(0);
        if log > 6 || block > BLOCK_MAX {
            return Err(bad("s_log_block_size", 0x18, log, "at most 6"));
        }
        let (inode_size, first_ino) = match raw.s_rev_level.get() {
            0 => (INODE_HEAD, GOOD_OLD_FIRST_INO),
            _ => (raw.s_inode_size.get().into(), raw.s_first_ino.get()),
        };
        let is_odd = !inode_size.is_power_of_two() || inode_size < INODE_HEAD;
        if is_odd || inode_size as u64 > block {
            let expected = format!("a power of two from 128 to {block}");
            return Err(bad("s_inode_size", 0x58, inode_size, expected));
        }
        let mut volume = Self {
            block,
            device,
            blocks: u64::from(raw.s_blocks_count_lo.get()),
            cluster: 1,
            first_data_block: raw.s_first_data_block.get().into(),
            blocks_per_group: raw.s_blocks_per_group.get().into(),
            inodes_per_group: raw.s_inodes_per_group.get(),
            inodes: raw.s_inodes_count.get(),
            groups: 0,
            inode_size,
            desc_size: DESC_LEN_32,
            first_ino,
            seed: seed(&raw),
            is_verified,
            raw,
        };
        if volume.has_incompat(incompat::BITS64) {
            volume.blocks |= u64::from(volume.raw.s_blocks_count_hi.get()) << 32;
            volume.desc_size = volume.raw.s_desc_size.get().into();
        }
        volume.check_groups()?;
        Ok(volume)
    }

    /// Checks what the places of groups come from, and counts the groups.
    fn check_groups(&mut self) -> Result<()> {
        let bits = self.block * 8;
        if self.has_ro(ro_compat::BIGALLOC) {
            let more = self.raw.s_log_cluster_size.get();
            let more = more.checked_sub(self.raw.s_log_block_size.get());
            let more = more.filter(|more| *more <= 16).ok_or_else(|| {
                let found = self.raw.s_log_cluster_size.get();
                bad("s_log_cluster_size", 0x1c, found, "at least a block's")
            })?;
            self.cluster = 1 << more;
        }
        let desc = self.desc_size as u64;
        if !desc.is_power_of_two() || desc > self.block || desc < DESC_LEN_32 as u64 {
            let expected = "a power of two from 32 to a block";
            return Err(bad("s_desc_size", 0xfe, desc, expected));
        }
        let per = self.blocks_per_group;
        if per == 0 || per > bits.saturating_mul(self.cluster) {
            let expected = format!("1 to {}", bits.saturating_mul(self.cluster));
            return Err(bad("s_blocks_per_group", 0x20, per, expected));
        }
        let inodes = u64::from(self.inodes_per_group);
        if inodes == 0 || inodes > bits {
            let expected = format!("1 to {bits}");
            return Err(bad("s_inodes_per_group", 0x28, inodes, expected));
        }
        let data = self.blocks.checked_sub(self.first_data_block);
        let data = data.filter(|data| *data > 0 && self.blocks < 1 << 48);
        let data = data.ok_or_else(|| {
            let expected = "more than s_first_data_block, less than 2^48";
            bad("s_blocks_count", 0x4, self.blocks, expected)
        })?;
        let groups = data.div_ceil(per);
        self.groups = u32::try_from(groups)
            .map_err(|_| bad("s_blocks_per_group", 0x20, per, "groups that 32 bits count"))?;
        let most = groups.saturating_mul(inodes);
        if u64::from(self.inodes) > most || self.inodes < self.first_ino {
            let expected = format!("{} to {most}", self.first_ino);
            return Err(bad("s_inodes_count", 0, self.inodes, expected));
        }
        Ok(())
    }

    pub(crate) fn has_compat(&self, flag: u32) -> bool {
        self.raw.s_feature_compat.get() & flag != 0
    }

    pub(crate) fn has_incompat(&self, flag: u32) -> bool {
        self.raw.s_feature_incompat.get() & flag != 0
    }

    pub(crate) fn has_ro(&self, flag: u32) -> bool {
        self.raw.s_feature_ro_compat.get() & flag != 0
    }

    /// Returns whether metadata has checksums.
    pub(crate) fn has_sums(&self) -> bool {
        self.has_ro(ro_compat::METADATA_CSUM)
    }

    /// Returns whether metadata has checksums that are looked at.
    pub(crate) fn verifies(&self) -> bool {
        self.is_verified && self.has_sums()
    }

    /// Counts the blocks that can be read: the volume may claim more than the device has.
    pub(crate) fn there(&self) -> u64 {
        self.blocks.min(self.device / self.block)
    }

    /// Returns the first block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        self.first_data_block + u64::from(group) * self.blocks_per_group
    }

    /// Returns how many blocks a group has.
    pub(crate) fn group_len(&self, group: u32) -> u64 {
        let left = self.blocks.saturating_sub(self.group_start(group));
        left.min(self.blocks_per_group)
    }

    /// Returns the cluster that a block is in, counted from the first one that the bitmaps have.
    pub(crate) fn cluster_of(&self, block: u64) -> u64 {
        block.saturating_sub(self.first_data_block) / self.cluster
    }

    /// Returns whether a replica of the superblock begins the group (blockgroup.rst, super.rst).
    pub(crate) fn has_super(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.has_compat(compat::SPARSE_SUPER2) {
            let mut both = self.raw.s_backup_bgs.iter();
            return both.any(|backup| backup.get() == group);
        }
        if !self.has_ro(ro_compat::SPARSE_SUPER) {
            return true;
        }
        group == 1 || [3, 5, 7].into_iter().any(|base| is_power(group, base))
    }

    /// Returns the block that the superblock itself is in.
    pub(crate) fn super_block(&self) -> u64 {
        SUPERBLOCK / self.block
    }

    /// Group descriptors in a block.
    pub(crate) fn descs_per_block(&self) -> u64 {
        self.block / self.desc_size as u64
    }

    /// Returns whether the descriptors of this block are in the groups that they are of.
    fn is_meta(&self, number: u64) -> bool {
        let first = u64::from(self.raw.s_first_meta_bg.get());
        self.has_incompat(incompat::META_BG) && number >= first
    }

    /// Returns the block in which the descriptor of a group is (blockgroup.rst: meta block groups).
    pub(crate) fn desc_block(&self, group: u32) -> u64 {
        let per = self.descs_per_block();
        let number = u64::from(group) / per;
        if !self.is_meta(number) {
            return self.super_block() + 1 + number;
        }
        let first = u32::try_from(number * per).unwrap_or(u32::MAX);
        // With blocks of 1 KiB in clusters, what is before the superblock has a block too.
        let is_shifted = self.block == SUPERBLOCK && number == 0 && self.first_data_block == 0;
        self.group_start(first) + u64::from(self.has_super(first)) + u64::from(is_shifted)
    }

    /// Returns blocks that hold replicas of a group's descriptor: of the second and the last group of its meta block
    /// group, or of the first groups with a replica of the superblock.
    pub(crate) fn desc_replicas(&self, group: u32) -> Vec<u64> {
        let per = self.descs_per_block();
        let number = u64::from(group) / per;
        let (first, last) = (number * per, (number + 1) * per - 1);
        if self.is_meta(number) {
            let groups = [first + 1, last.min(u64::from(self.groups) - 1)];
            let groups = groups
                .into_iter()
                .filter_map(|group| u32::try_from(group).ok());
            let groups = groups.filter(|group| *group < self.groups && u64::from(*group) > first);
            return groups
                .map(|group| self.group_start(group) + u64::from(self.has_super(group)))
                .collect();
        }
        self.replicas()
            .map(|group| self.group_start(group) + 1 + number)
            .collect()
    }

    /// Returns the first groups, but for the very first, that begin with a replica of the superblock.
    fn replicas(&self) -> impl Iterator<Item = u32> {
        let all = (1..self.groups).filter(|group| self.has_super(*group));
        all.take(REPLICAS)
    }

    /// Returns whether the inode belongs to the volume itself, and no path leads to it.
    pub(crate) fn is_hidden(&self, ino: u32) -> bool {
        let raw = &self.raw;
        let own = [
            raw.s_journal_inum,
            raw.s_usr_quota_inum,
            raw.s_grp_quota_inum,
            raw.s_prj_quota_inum,
            raw.s_orphan_file_inum,
        ];
        let is_reserved = ino < self.first_ino && ino != crate::disk::ondisk::ROOT_INO;
        is_reserved || own.iter().any(|own| own.get() == ino)
    }
}

/// Returns what checksums of metadata begin with: the UUID's checksum, or what it was when the
/// volume was made.
fn seed(raw: &SuperBlock) -> u32 {
    match raw.s_feature_incompat.get() & incompat::CSUM_SEED {
        0 => csum::crc32c(!0, &raw.s_uuid),
        _ => raw.s_checksum_seed.get(),
    }
}

fn known_features(raw: &SuperBlock) -> Result<()> {
    let flags = raw.s_feature_incompat.get();
    if flags & incompat::JOURNAL_DEV != 0 {
        let words = "the device holds the journal of another volume, and no files";
        return Err(Error::note(Kind::Unsupported, words));
    }
    let unknown = flags & !incompat::KNOWN;
    if unknown != 0 {
        let names = crate::disk::features::incompat(unknown);
        let words = format!("the volume has features that are not read here: {names}");
        return Err(Error::note(Kind::Unsupported, words));
    }
    Ok(())
}

/// # Errors
/// `Corrupt`.
pub(crate) fn check_sum(raw: &SuperBlock) -> Result<()> {
    let bytes = raw.as_bytes();
    let sum = csum::crc32c(!0, bytes.get(..SUPERBLOCK_LEN - 4).unwrap_or_default());
    let stored = raw.s_checksum.get();
    if sum != stored {
        let (found, expected) = (format!("{stored:#010x}"), format!("{sum:#010x}"));
        return Err(bad("s_checksum", 0x3fc, found, expected));
    }
    Ok(())
}

fn is_power(number: u32, base: u32) -> bool {
    let mut power = base;
    while power < number {
        power = power.saturating_mul(base);
    }
    power == number
}

/// Damage in the superblock.
fn bad(
    field: &'static str,
    at: u64,
    found: impl std::fmt::Display,
    expected: impl Into<String>,
) -> Error {
    Error::corrupt(field, SUPERBLOCK + at, format!("{found}"), expected)
}

//! Where things go: the global layout policies of section 3.3 of the paper. They only wish;
//! the allocators find what is free. [`Summary::group_for_directory`] chooses the group of a new
//! directory.

use crate::disk::ondisk::{Superblock, UFS_NDADDR};
use crate::disk::volume::{Variant, Volume};
use crate::groups::summary::Summary;
use std::ops::Range;

/// What is wished for: a fragment, the group that it is in, and for which inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) near: u64,
    pub(crate) group: u64,
    pub(crate) ino: u32,
}

impl Wish {
    pub(crate) fn at(volume: &Volume, ino: u32, near: u64) -> Self {
        let near = if near < volume.size { near } else { 0 };
        Self {
            near,
            group: volume.group_of(near),
            ino,
        }
    }

    fn in_group(volume: &Volume, ino: u32, group: u64) -> Self {
        Self::at(volume, ino, volume.base(group) + volume.frag)
    }

    /// Returns who may use what is kept for its inode.
    pub(crate) fn owner(&self) -> Option<u64> {
        Some(self.ino.into())
    }
}

/// The parameters of the policies, as `tunefs` sets them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Percent that are kept for root.
    pub(crate) minfree: u64,
    /// Whether time is saved where room is short, not space.
    pub(crate) saves_time: bool,
    /// Blocks that are put in a row.
    maxcontig: u64,
    /// Most blocks that a file takes of a group in a row.
    maxbpg: u64,
    /// Fragments that pass under the head while the processor begins another transfer.
    skip: u64,
    /// Whether a block that is taken is replaced by the rotationally closest of its cylinder.
    pub(crate) has_cylinders: bool,
}

impl Policy {
    /// Returns what the superblock says, as it is in memory.
    pub(crate) fn new(volume: &Volume, raw: &Superblock) -> Self {
        let number = |n: i32| u64::try_from(n).unwrap_or(0);
        Self {
            minfree: number(raw.fs_minfree),
            saves_time: raw.fs_optim == 0,
            maxcontig: number(raw.fs_maxcontig).max(1),
            maxbpg: number(raw.fs_maxbpg).max(1),
            skip: skip(volume, raw),
            has_cylinders: raw.fs_old_cpg > 1,
        }
    }

    /// Returns how many blocks of a file, block `lbn` among them, may be kept in a row for it: what is
    /// left of its section. None where blocks are to have gaps between them, or to follow each
    /// other by the turn of the disk.
    pub(crate) fn row(&self, volume: &Volume, lbn: u64) -> u64 {
        match self.skip {
            0 if !self.has_cylinders => self.section_end(volume, lbn) - lbn,
            _ => 0,
        }
    }

    /// Most blocks of a cluster; 0 where there are none.
    pub(crate) fn cluster_max(&self, volume: &Volume) -> u64 {
        match volume.variant {
            Variant::Bsd43 => 0,
            _ => self.maxcontig.min(volume.contigsumsize()),
        }
    }

    /// Returns how many blocks of its section are before block `lbn`. The direct blocks are a section,
    /// and those of each indirect block, or each `fs_maxbpg` of them.
    pub(crate) fn within_section(&self, volume: &Volume, lbn: u64) -> u64 {
        let index = match lbn.checked_sub(UFS_NDADDR) {
            None => lbn,
            Some(past) => past % volume.nindir,
        };
        index % self.maxbpg
    }

    /// Returns the block that begins the next section of the one that `lbn` is in.
    fn section_end(&self, volume: &Volume, lbn: u64) -> u64 {
        let map = match lbn.checked_sub(UFS_NDADDR) {
            None => UFS_NDADDR,
            Some(past) => UFS_NDADDR + (past / volume.nindir + 1) * volume.nindir,
        };
        map.min(lbn - self.within_section(volume, lbn) + self.maxbpg)
    }

    /// Returns the place for block `lbn` of a file, after the one at `before`, if there is one: beside
    /// the inode; after 48 KB (twelve blocks), and at each megabyte (an indirect block's worth,
    /// or `fs_maxbpg` blocks), in another group with at least the average of free blocks; else
    /// behind the block before, with `rotdelay` between where `fs_maxcontig` blocks are in a row.
    pub(crate) fn block(
        &self,
        volume: &Volume,
        summary: &Summary,
        (ino, lbn): (u32, u64),
        before: Option<u64>,
    ) -> Wish {
        let own = u64::from(ino) / volume.ipg;
        let within = self.within_section(volume, lbn);
        let Some(before) = before.filter(|_| within > 0) else {
            if lbn < UFS_NDADDR {
                return Wish::in_group(volume, ino, own);
            }
            let start = match before {
                Some(before) => volume.group_of(before) + 1,
                None => own + lbn / self.maxbpg,
            };
            return Wish::in_group(volume, ino, summary.roomy_group(volume, start));
        };
        let next = before + volume.frag;
        let ends_row = within.is_multiple_of(self.maxcontig);
        let next = if ends_row { next + self.skip } else { next };
        Wish::at(volume, ino, next)
    }

    /// Returns the blocks of a file, `lbn` among them, that are to be one cluster (`ffs_reallocblks` of
    /// 4.4BSD): `fs_maxcontig` of a section, as long as clusters are counted. `None` where none
    /// are: on 4.3BSD's format, and where no two blocks are to be in a row.
    pub(crate) fn cluster(&self, volume: &Volume, lbn: u64) -> Option<Range<u64>> {
        let most = self.cluster_max(volume);
        if most < 2 {
            return None;
        }
        let start = lbn - self.within_section(volume, lbn) % most;
        let end = (start + most).min(self.section_end(volume, lbn));
        Some(start..end)
    }

    /// Returns the place for a cluster that begins with block `lbn` of a file, which is at `first` now,
    /// after the block at `before`: behind that one, but for the start of a section, for which
    /// the group has been chosen.
    pub(crate) fn of_cluster(
        &self,
        volume: &Volume,
        (ino, lbn): (u32, u64),
        before: Option<u64>,
        first: u64,
    ) -> Wish {
        match before.filter(|_| self.within_section(volume, lbn) > 0) {
            Some(before) => Wish::at(volume, ino, before + volume.frag),
            None => Wish::at(volume, ino, first),
        }
    }
}

/// Fragments that pass under the head while the processor begins another transfer.
fn skip(volume: &Volume, raw: &Superblock) -> u64 {
    if volume.variant == Variant::Ufs2 || raw.fs_old_cpg <= 1 {
        return 0;
    }
    let field = |n: i32| u64::try_from(n).unwrap_or(0);
    let turns = field(raw.fs_old_rotdelay).saturating_mul(field(raw.fs_old_rps));
    let sectors = turns.saturating_mul(field(raw.fs_old_nsect));
    let fragments = sectors.checked_div(field(raw.fs_old_nspf) * 1000);
    fragments.unwrap_or(0).next_multiple_of(volume.frag)
}

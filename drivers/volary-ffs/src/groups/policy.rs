//! The global layout policies of section 3.3 of the paper: where things should go. They only state
//! wishes, and the allocators find what is free. [`Summary::group_for_directory`] chooses the group
//! of a new directory.

use crate::disk::ondisk::{Superblock, UFS_NDADDR};
use crate::disk::volume::{Variant, Volume};
use crate::groups::summary::Summary;
use std::ops::Range;

/// A wish: a fragment, the group that it is in, and the inode that it is for.
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

    /// Returns the file whose reservations this wish may use.
    pub(crate) fn owner(&self) -> Option<u64> {
        Some(self.ino.into())
    }
}

/// The parameters of the policies, as `tunefs` sets them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Percentage reserved for root.
    pub(crate) minfree: u64,
    /// Whether time is saved when room is short, rather than space.
    pub(crate) saves_time: bool,
    /// Blocks that are placed consecutively.
    maxcontig: u64,
    /// Most consecutive blocks that a file takes in a group.
    maxbpg: u64,
    /// Fragments that pass under the head while the processor begins another transfer.
    skip: u64,
    /// Whether a taken block is replaced by the rotationally closest one of its cylinder.
    pub(crate) has_cylinders: bool,
}

impl Policy {
    /// Returns the policy with the superblock's parameters.
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

    /// Returns how many consecutive blocks may be reserved for a file from block `lbn` on: the rest
    /// of its section. Returns 0 if the policy leaves gaps between blocks, or goes by rotational
    /// position.
    pub(crate) fn row(&self, volume: &Volume, lbn: u64) -> u64 {
        match self.skip {
            0 if !self.has_cylinders => self.section_end(volume, lbn) - lbn,
            _ => 0,
        }
    }

    /// Returns the most blocks of a cluster, or 0 if the volume has no clusters.
    pub(crate) fn cluster_max(&self, volume: &Volume) -> u64 {
        match volume.variant {
            Variant::Bsd43 => 0,
            _ => self.maxcontig.min(volume.contigsumsize()),
        }
    }

    /// Returns how many blocks of its section are before block `lbn`. The direct blocks form a
    /// section, and so do the blocks of each indirect block, or each `fs_maxbpg` of them.
    pub(crate) fn within_section(&self, volume: &Volume, lbn: u64) -> u64 {
        let index = match lbn.checked_sub(UFS_NDADDR) {
            None => lbn,
            Some(past) => past % volume.nindir,
        };
        index % self.maxbpg
    }

    /// Returns the first block of the section after the one that `lbn` is in.
    fn section_end(&self, volume: &Volume, lbn: u64) -> u64 {
        let map = match lbn.checked_sub(UFS_NDADDR) {
            None => UFS_NDADDR,
            Some(past) => UFS_NDADDR + (past / volume.nindir + 1) * volume.nindir,
        };
        map.min(lbn - self.within_section(volume, lbn) + self.maxbpg)
    }

    /// Returns the place for block `lbn` of a file, with the block before it at `before`.
    ///
    /// - The first block goes into the inode's group.
    /// - After twelve blocks (48 KB), and at each indirect block's worth (a megabyte) or
    ///   `fs_maxbpg` blocks, the file changes the group. The new one has at least the average of
    ///   free blocks.
    /// - Other blocks go behind the one before, with a gap of `rotdelay` after every `fs_maxcontig`
    ///   blocks.
    pub(crate) fn block(
        &self,
        volume: &Volume,
        summary: &Summary,
        ino: u32,
        lbn: u64,
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

    /// Returns the blocks of a file that should form one cluster with `lbn` (`ffs_reallocblks` of
    /// 4.4BSD). They are up to `fs_maxcontig` blocks of a section, and no more than the group's
    /// summary counts. Returns `None` on 4.3BSD's format, and if no two blocks are to be
    /// consecutive.
    pub(crate) fn cluster(&self, volume: &Volume, lbn: u64) -> Option<Range<u64>> {
        let most = self.cluster_max(volume);
        if most < 2 {
            return None;
        }
        let start = lbn - self.within_section(volume, lbn) % most;
        let end = (start + most).min(self.section_end(volume, lbn));
        Some(start..end)
    }

    /// Returns the place for a cluster that begins with block `lbn` of a file, now at `first`. It
    /// goes behind the block before, at `before`. The start of a section stays near `first`,
    /// because its group has been chosen already.
    pub(crate) fn of_cluster(
        &self,
        volume: &Volume,
        ino: u32,
        lbn: u64,
        before: Option<u64>,
        first: u64,
    ) -> Wish {
        match before.filter(|_| self.within_section(volume, lbn) > 0) {
            Some(before) => Wish::at(volume, ino, before + volume.frag),
            None => Wish::at(volume, ino, first),
        }
    }
}

/// Returns the fragments that pass under the head while the processor begins another transfer.
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

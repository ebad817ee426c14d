//! Where things go: the global layout policies of section 3.3 of the paper. They only wish;
//! the allocators find what is free.

use crate::alloc::Alloc;
use crate::ondisk::UFS_NDADDR;
use crate::volume::{Variant, Volume};
use std::ops::Range;

/// What is wished for: a fragment, and the group that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) near: u64,
    pub(crate) group: u64,
}

impl Wish {
    fn at(volume: &Volume, near: u64) -> Self {
        let near = if near < volume.size { near } else { 0 };
        Self {
            near,
            group: volume.group_of(near),
        }
    }

    fn in_group(volume: &Volume, group: u64) -> Self {
        Self::at(volume, volume.base(group) + volume.frag)
    }
}

/// The group for a new directory: of those with at least the average of free inodes, the one
/// with the fewest directories.
pub(crate) fn directory(volume: &Volume, alloc: &Alloc) -> u64 {
    let groups = i64::try_from(volume.ncg).unwrap_or(1).max(1);
    let average = alloc.total[2] / groups;
    let fit = (0..volume.ncg).filter(|&group| alloc.sums(group)[2] >= average);
    fit.min_by_key(|&group| alloc.sums(group)[0]).unwrap_or(0)
}

/// The place for block `lbn` of a file, after the one at `before`, if there is one: beside
/// the inode; after 48 KB (twelve blocks), and at each megabyte (an indirect block's worth,
/// or `fs_maxbpg` blocks), in another group with at least the average of free blocks; else
/// behind the block before, with `rotdelay` between where `fs_maxcontig` blocks are in a row.
pub(crate) fn block(
    volume: &Volume,
    alloc: &Alloc,
    ino: u32,
    lbn: u64,
    before: Option<u64>,
) -> Wish {
    let own = u64::from(ino) / volume.ipg;
    let within = within_section(volume, lbn);
    let Some(before) = before.filter(|_| within > 0) else {
        if lbn < UFS_NDADDR {
            return Wish::in_group(volume, own);
        }
        let start = match before {
            Some(before) => volume.group_of(before) + 1,
            None => own + lbn / maxbpg(volume),
        };
        return Wish::in_group(volume, section(volume, alloc, start));
    };
    let next = before + volume.frag;
    let ends_row = within.is_multiple_of(maxcontig(volume));
    Wish::at(volume, if ends_row { next + skip(volume) } else { next })
}

/// The blocks of a file, `lbn` among them, that are to be one cluster (`ffs_reallocblks` of
/// 4.4BSD): `fs_maxcontig` of a section, as long as clusters are counted. `None` where none
/// are: on 4.3BSD's format, and where no two blocks are to be in a row.
pub(crate) fn cluster(volume: &Volume, lbn: u64) -> Option<Range<u64>> {
    let most = match volume.variant {
        Variant::Bsd43 => 0,
        _ => maxcontig(volume).min(volume.contigsumsize()),
    };
    if most < 2 {
        return None;
    }
    let within = within_section(volume, lbn);
    let section = lbn - within;
    let map = match section.checked_sub(UFS_NDADDR) {
        None => UFS_NDADDR,
        Some(past) => UFS_NDADDR + (past / volume.nindir + 1) * volume.nindir,
    };
    let start = lbn - within % most;
    let end = (start + most).min(map).min(section + maxbpg(volume));
    Some(start..end)
}

/// The place for a cluster that begins with block `lbn` of a file, which is at `first` now,
/// after the block at `before`: behind that one, but for the start of a section, for which
/// the group has been chosen.
pub(crate) fn of_cluster(volume: &Volume, lbn: u64, before: Option<u64>, first: u64) -> Wish {
    match before.filter(|_| within_section(volume, lbn) > 0) {
        Some(before) => Wish::at(volume, before + volume.frag),
        None => Wish::at(volume, first),
    }
}

/// How many blocks of its section are before block `lbn`. The direct blocks are a section,
/// and those of each indirect block, or each `fs_maxbpg` of them.
fn within_section(volume: &Volume, lbn: u64) -> u64 {
    let index = match lbn.checked_sub(UFS_NDADDR) {
        None => lbn,
        Some(past) => past % volume.nindir,
    };
    index % maxbpg(volume)
}

/// Most blocks that a file takes of a group in a row.
fn maxbpg(volume: &Volume) -> u64 {
    u64::try_from(volume.found.raw.fs_maxbpg)
        .unwrap_or(0)
        .max(1)
}

/// Blocks that are put in a row.
fn maxcontig(volume: &Volume) -> u64 {
    u64::try_from(volume.found.raw.fs_maxcontig)
        .unwrap_or(0)
        .max(1)
}

/// Fragments that pass under the head while the processor begins another transfer.
fn skip(volume: &Volume) -> u64 {
    let raw = &volume.found.raw;
    let field = |n: i32| u64::try_from(n).unwrap_or(0);
    let sectors = field(raw.fs_old_rotdelay) * field(raw.fs_old_rps) * field(raw.fs_old_nsect);
    if volume.variant == Variant::Ufs2 || raw.fs_old_cpg <= 1 {
        return 0;
    }
    let fragments = sectors.checked_div(field(raw.fs_old_nspf) * 1000);
    fragments.unwrap_or(0).next_multiple_of(volume.frag)
}

/// A group for another section of a file: the next with at least the average of free blocks.
fn section(volume: &Volume, alloc: &Alloc, start: u64) -> u64 {
    let groups = i64::try_from(volume.ncg).unwrap_or(1).max(1);
    let average = alloc.total[1] / groups;
    let mut all = (0..volume.ncg).map(|i| (start + i) % volume.ncg);
    all.find(|&group| alloc.sums(group)[1] >= average)
        .unwrap_or(start % volume.ncg)
}

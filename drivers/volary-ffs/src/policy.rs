//! Where things go: the global layout policies of section 3.3 of the paper. They only wish;
//! the allocators find what is free.

use crate::alloc::Alloc;
use crate::ondisk::UFS_NDADDR;
use crate::volume::Volume;

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
    let raw = &volume.found.raw;
    let maxbpg = u64::try_from(raw.fs_maxbpg).unwrap_or(0).max(1);
    let own = u64::from(ino) / volume.ipg;
    let (index, is_direct) = match lbn.checked_sub(UFS_NDADDR) {
        None => (lbn, true),
        Some(past) => (past % volume.nindir, false),
    };
    let begins = index.is_multiple_of(maxbpg);
    let Some(before) = before.filter(|_| !begins) else {
        if is_direct {
            return Wish::in_group(volume, own);
        }
        let start = match before {
            Some(before) => volume.group_of(before) + 1,
            None => own + lbn / maxbpg,
        };
        return Wish::in_group(volume, section(volume, alloc, start));
    };
    let maxcontig = u64::try_from(raw.fs_maxcontig).unwrap_or(0).max(1);
    let next = before + volume.frag;
    let in_row = lbn.is_multiple_of(maxcontig);
    Wish::at(volume, if in_row { next + skip(volume) } else { next })
}

/// Fragments that pass under the head while the processor begins another transfer.
fn skip(volume: &Volume) -> u64 {
    let raw = &volume.found.raw;
    let field = |n: i32| u64::try_from(n).unwrap_or(0);
    let sectors = field(raw.fs_old_rotdelay) * field(raw.fs_old_rps) * field(raw.fs_old_nsect);
    if volume.variant == crate::volume::Variant::Ufs2 || raw.fs_old_cpg <= 1 {
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

//! A cylinder group whose maps change, with all counts derived from them: free blocks and
//! fragments, free runs of fragments, clusters, and blocks by cylinder and rotational position.

use crate::disk::ondisk::{CG_INITEDIBLK_AT, Order, Stored, ocg};
use crate::disk::volume::{Variant, Volume};
use crate::groups::cg::{Group, runs};

/// A change of directories, free blocks, free inodes, free fragments.
pub(crate) type Delta = [i64; 4];

/// A cylinder group in memory.
pub(crate) struct Tally {
    pub(crate) group: Group,
    /// Whether it differs from the disk's copy.
    pub(crate) is_dirty: bool,
    /// Whether more of its inodes count as initialised than on the disk. Zeros must reach the disk
    /// for these first.
    pub(crate) is_raised: bool,
}

impl Tally {
    /// Takes a group into memory. The format's own fragments count as taken there, whatever the
    /// maps say.
    pub(crate) fn new(volume: &Volume, number: u64, mut group: Group) -> Self {
        let base = volume.base(number);
        let (first, end) = volume.reserved(number);
        let summaries = volume.csaddr..volume.csaddr + volume.cssize.div_ceil(volume.fsize);
        let own = summaries.start.max(base)..summaries.end.min(base + group.fragments);
        for fragment in (first..end).chain(own) {
            group.set_free(fragment - base, false);
        }
        for index in 0..if number == 0 { 3 } else { 0 } {
            group.set_used(index, true);
        }
        Self {
            group,
            is_dirty: false,
            is_raised: false,
        }
    }

    /// Returns which fragments of a block are free, a bit for each.
    pub(crate) fn free_of(&self, volume: &Volume, block: u64) -> u8 {
        self.group.free_of(block, volume.frag)
    }

    /// Makes exactly these fragments of a block free, and updates the counts.
    pub(crate) fn set_free_of(&mut self, volume: &Volume, block: u64, free: u8) -> Delta {
        let before = self.free_of(volume, block);
        let mut delta = [0; 4];
        self.count(volume, block, before, -1, &mut delta);
        for i in 0..volume.frag {
            if (before ^ free) >> i & 1 == 1 {
                self.group
                    .set_free(block * volume.frag + i, free >> i & 1 == 1);
            }
        }
        self.count(volume, block, free, 1, &mut delta);
        self.add(&delta);
        delta
    }

    /// Marks an inode as used or free, and updates the counts.
    pub(crate) fn set_used(&mut self, index: u64, used: bool, is_dir: bool) -> Delta {
        if self.group.is_used(index) == used {
            return [0; 4];
        }
        self.group.set_used(index, used);
        let sign = if used { 1 } else { -1 };
        let delta = [if is_dir { sign } else { 0 }, 0, -sign, 0];
        self.add(&delta);
        delta
    }

    fn add(&mut self, delta: &Delta) {
        self.is_dirty = true;
        for (sum, change) in self.group.raw.cg_cs.iter_mut().zip(delta) {
            *sum = sum.saturating_add(i32::try_from(*change).unwrap_or(0));
        }
    }

    /// Adds the free fragments of a block to the counts (`sign` 1), or subtracts them (-1).
    fn count(&mut self, volume: &Volume, block: u64, free: u8, sign: i64, delta: &mut Delta) {
        if u64::from(free.count_ones()) == volume.frag {
            delta[1] += sign;
            self.count_cluster(volume, block, sign > 0);
            self.count_position(volume, block, sign);
            return;
        }
        delta[3] += sign * i64::from(free.count_ones());
        for (_, len) in runs(free) {
            if let Some(sum) = self.group.raw.cg_frsum.get_mut(usize::from(len)) {
                *sum = sum.saturating_add_signed(if sign > 0 { 1 } else { -1 });
            }
        }
    }

    /// Updates the cluster summary (4.4BSD) for a block that has become free, or is no longer. Free
    /// neighbours join or part.
    fn count_cluster(&mut self, volume: &Volume, block: u64, free: bool) {
        let most = volume.contigsumsize();
        let map = self.group.raw.cg_clusteroff;
        if most == 0 || map == 0 {
            return;
        }
        let map = map as usize;
        let blocks = u64::from(self.group.raw.cg_nclusterblks);
        let is_free = |at: &u64| self.group.bit(map, *at);
        let after = (block + 1..blocks).take(most as usize).take_while(is_free);
        let after = after.count() as u64;
        let before = (0..block).rev().take(most as usize).take_while(is_free);
        let before = before.count() as u64;
        self.group.set_bit(map, block, free);
        let sign = if free { 1 } else { -1 };
        let whole = (before + after + 1).min(most);
        self.add_to_sum(volume.order, whole, sign);
        for part in [before, after].into_iter().filter(|&part| part > 0) {
            self.add_to_sum(volume.order, part, -sign);
        }
    }

    fn add_to_sum(&mut self, order: Order, len: u64, sign: i32) {
        let at = self.group.raw.cg_clustersumoff as usize + 4 * len as usize;
        let sum = i32::get(order, &self.group.bytes, at).saturating_add(sign);
        sum.put(order, &mut self.group.bytes, at);
    }

    /// Counts a free block by cylinder and rotational position, as UFS1 does.
    fn count_position(&mut self, volume: &Volume, block: u64, sign: i64) {
        let Some((cylinder, position)) = volume.position(block * volume.frag) else {
            return;
        };
        let raw = &self.group.raw;
        let (totals, counts, positions) = match self.group.iusedoff == ocg::IUSED as usize {
            true => (ocg::BTOT, ocg::B, ocg::POSITIONS),
            false => {
                let at = |offset: i32| usize::try_from(offset).unwrap_or(0);
                let positions = usize::try_from(volume.found.raw.fs_old_nrpos).unwrap_or(0);
                (at(raw.cg_old_btotoff), at(raw.cg_old_boff), positions)
            }
        };
        // Missing or misplaced tables are left alone.
        let (first, end) = (ocg::BTOT, self.group.iusedoff);
        let total = totals + 4 * cylinder;
        let count = counts + 2 * (cylinder * positions + position);
        if totals < first || counts <= totals || total + 4 > counts || count + 2 > end {
            return;
        }
        let sign = if sign > 0 { 1 } else { -1 };
        let order = volume.order;
        let bytes = &mut self.group.bytes;
        let sum = i32::get(order, bytes, total).saturating_add(sign.into());
        sum.put(order, bytes, total);
        let sum = i16::get(order, bytes, count).saturating_add(sign);
        sum.put(order, bytes, count);
    }

    /// Returns the bytes to store, with the current counts.
    pub(crate) fn stored(&mut self, volume: &Volume) -> &[u8] {
        let (order, raw) = (volume.order, &self.group.raw);
        let bytes = &mut self.group.bytes;
        raw.cg_cs.put(order, bytes, 24);
        [raw.cg_rotor, raw.cg_frotor, raw.cg_irotor].put(order, bytes, 40);
        raw.cg_frsum.put(order, bytes, 52);
        if volume.variant == Variant::Ufs2 {
            raw.cg_initediblk.put(order, bytes, CG_INITEDIBLK_AT);
        }
        volume.hashes.seal_group(order, bytes);
        bytes
    }
}

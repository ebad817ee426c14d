//! The free blocks of a group from the view of one file.

use super::Alloc;
use crate::disk::ondisk::ocg;
use crate::disk::volume::Volume;
use crate::groups::cg::runs;
use crate::groups::tally::Tally;
use std::ops::Range;
use volary_block::Reservations;

/// Runs of free blocks that a search for a long one visits in a group.
const ROWS: u32 = 1024;

/// A group without the reservations of other files.
pub(super) struct Field<'a> {
    pub(super) tally: &'a Tally,
    volume: &'a Volume,
    /// The group's first fragment.
    base: u64,
    kept: &'a Reservations,
    owner: Option<u64>,
}

impl Alloc {
    /// Returns a group that is in memory, as seen by `owner`.
    pub(super) fn field<'a>(
        &'a self,
        volume: &'a Volume,
        number: u64,
        owner: Option<u64>,
    ) -> Option<Field<'a>> {
        Some(Field {
            tally: self.groups.get(&number)?,
            volume,
            base: volume.base(number),
            kept: &self.kept,
            owner,
        })
    }
}

impl Field<'_> {
    /// Returns the number of whole blocks in the group.
    pub(super) fn blocks(&self) -> u64 {
        self.tally.group.fragments / self.volume.frag
    }

    /// Returns whether all of a block is free, regardless of reservations.
    fn is_whole(&self, block: u64) -> bool {
        let free = self.tally.free_of(self.volume, block);
        u64::from(free.count_ones()) == self.volume.frag
    }

    /// Returns the end of the other file's reservation that a block lies in, as the block behind
    /// it.
    fn others_end(&self, block: u64) -> Option<u64> {
        let at = self.base + block * self.volume.frag;
        let others = self.kept.others_at(at, self.owner)?;
        Some((others.end - self.base).div_ceil(self.volume.frag))
    }

    /// Returns whether the owner can allocate a block as a whole.
    pub(super) fn is_free(&self, block: u64) -> bool {
        block < self.blocks() && self.is_whole(block) && self.others_end(block).is_none()
    }

    /// Returns the first block of a range that the owner can allocate as a whole.
    pub(super) fn first_free(&self, blocks: Range<u64>) -> Option<u64> {
        let frag = self.volume.frag;
        let some = |byte| byte == 0xff || byte != 0 && frag < 8;
        let mut from = blocks.start;
        loop {
            let mut free = self
                .tally
                .group
                .blocks_where(from..blocks.end, frag, some)
                .filter(|&block| self.is_whole(block));
            let block = free.next()?;
            match self.others_end(block) {
                Some(end) => from = end,
                None => return Some(block),
            }
        }
    }

    /// Returns how many consecutive blocks can be allocated from a free one on, at most `most`.
    pub(super) fn row(&self, block: u64, most: u64) -> u64 {
        let at = self.base + block * self.volume.frag;
        let above = self.kept.others_above(at, self.owner) - at;
        let most = most.min(above / self.volume.frag);
        let end = block.saturating_add(most).min(self.blocks());
        let row = (block..end).take_while(|&block| self.is_whole(block));
        row.count() as u64
    }

    /// Returns how many consecutive blocks before this one can be allocated, at most `most`.
    pub(super) fn row_before(&self, block: u64, most: u64) -> u64 {
        let before = (block.saturating_sub(most)..block).rev();
        before.take_while(|&block| self.is_free(block)).count() as u64
    }

    /// Returns the first run of `count` free blocks from block `from` on, or else before it. If
    /// there is none, returns the longest of the [`ROWS`] runs visited. A run is given as its first
    /// block and its length.
    pub(super) fn longest(&self, from: u64, count: u64) -> Option<(u64, u64)> {
        let mut best: Option<(u64, u64)> = None;
        let from = from.min(self.blocks());
        let mut looks = ROWS;
        for range in [from..self.blocks(), 0..from] {
            let mut at = range.start;
            while looks > 0
                && let Some(block) = self.first_free(at..range.end)
            {
                looks -= 1;
                let len = self.row(block, count).max(1);
                if best.is_none_or(|(_, longest)| longest < len) {
                    best = Some((block, len));
                }
                if len >= count {
                    return best;
                }
                at = block + len;
            }
        }
        best
    }

    /// Returns the first of `count` free fragments in one block.
    pub(super) fn find(&self, count: u64, near: Option<u64>) -> Option<u64> {
        if count == self.volume.frag {
            return self.find_block(near);
        }
        // Try the shortest runs that are long enough, and whole blocks only if there are none.
        let sums = self.tally.group.raw.cg_frsum.iter().enumerate();
        let len = sums.skip(usize::try_from(count).unwrap_or(1));
        let lens = len
            .filter(|(len, sum)| **sum > 0 && (*len as u64) < self.volume.frag)
            .map(|(len, _)| len);
        let in_pieces = lens.into_iter().find_map(|len| self.find_run(len, near));
        in_pieces.or_else(|| self.find_block(near))
    }

    /// Returns a free block: the one at `near`, the rotationally closest one of its cylinder, or
    /// the next one of the group.
    fn find_block(&self, near: Option<u64>) -> Option<u64> {
        let (volume, group) = (self.volume, &self.tally.group);
        if group.raw.cg_cs[1] <= 0 {
            return None;
        }
        let blocks = self.blocks();
        let start = near.unwrap_or(group.raw.cg_rotor.into());
        let start = (start / volume.frag).min(blocks.saturating_sub(1));
        if near.is_some() && !self.is_free(start) {
            let close = closest(volume, start, blocks, &|block| self.is_free(*block));
            if close.is_some() {
                return close.map(|block| block * volume.frag);
            }
        }
        let found = self
            .first_free(start..blocks)
            .or_else(|| self.first_free(0..start));
        found.map(|block| block * volume.frag)
    }

    /// Returns a free run of exactly `len` fragments.
    fn find_run(&self, len: usize, near: Option<u64>) -> Option<u64> {
        let (volume, group) = (self.volume, &self.tally.group);
        let blocks = group.fragments.div_ceil(volume.frag);
        let start = near.unwrap_or(group.raw.cg_frotor.into());
        let start = (start / volume.frag).min(blocks.saturating_sub(1));
        let fits = |range| {
            let some = |byte| byte != 0 && byte != 0xff;
            let mut blocks = group.blocks_where(range, volume.frag, some);
            blocks.find_map(|block| {
                let free = self.tally.free_of(volume, block);
                let run = runs(free).find(|run| usize::from(run.1) == len)?;
                let is_free = self.others_end(block).is_none();
                is_free.then(|| block * volume.frag + u64::from(run.0))
            })
        };
        fits(start..blocks).or_else(|| fits(0..start))
    }
}

/// Returns the free block of the same cylinder that passes under the head first after `block`.
fn closest(
    volume: &Volume,
    block: u64,
    blocks: u64,
    is_free: &dyn Fn(&u64) -> bool,
) -> Option<u64> {
    let raw = &volume.found.raw;
    if raw.fs_old_cpg <= 1 {
        return None;
    }
    let (cylinder, position) = volume.position(block * volume.frag)?;
    let sectors = u64::try_from(raw.fs_old_nspf).ok()? * volume.frag;
    let length = u64::try_from(raw.fs_old_spc).ok()?.checked_div(sectors)? + 2;
    let positions = match volume.is_42_groups() {
        true => ocg::POSITIONS,
        false => usize::try_from(raw.fs_old_nrpos).ok()?,
    };
    let around = block.saturating_sub(length)..(block + length).min(blocks);
    let distance = |at: &u64| {
        let (its, place) = volume.position(at * volume.frag)?;
        let turn = (place + positions).saturating_sub(position) % positions.max(1);
        (its == cylinder).then_some((turn, *at))
    };
    let candidates = around.filter(is_free).filter_map(|at| distance(&at));
    candidates.min().map(|(_, at)| at)
}

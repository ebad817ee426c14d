//! Clusters: blocks in a row, of which 4.4BSD's cylinder groups keep count.

use super::Alloc;
use crate::blocks::Reader;
use crate::mistakes::{Mistake, made};
use crate::ondisk::Stored;
use crate::policy::Wish;
use crate::tally::Tally;
use crate::volume::Volume;
use volary_core::Result;

impl Alloc {
    /// Takes `count` blocks in a row, each a piece of its own: in the group that is wished
    /// for, from what is wished for on; else in one found by quadratic rehash; else in any
    /// (`ffs_clusteralloc`). Gives the first fragment; `None` if there is no such cluster.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn take_cluster(
        &mut self,
        reader: &Reader<'_>,
        count: u64,
        wish: Wish,
    ) -> Result<Option<u64>> {
        let volume = reader.volume;
        let enough = i64::try_from(count).unwrap_or(i64::MAX);
        let mut near = Some(wish.near);
        for number in Self::order(volume, wish.group) {
            // The head is to go on in one direction: what is before counts last.
            let from = near
                .take()
                .map_or(0, |near| near.saturating_sub(volume.base(number)));
            if self.sums(number)[1] < enough || u64::from(self.maxcluster(number)) < count {
                continue;
            }
            let tally = self.tally(reader, number)?;
            let Some(block) = find(tally, volume, count, from / volume.frag) else {
                if from == 0 {
                    self.set_maxcluster(number, count - 1);
                }
                continue;
            };
            for block in block..block + count {
                self.take_whole(reader, number, block)?;
            }
            return Ok(Some(volume.base(number) + block * volume.frag));
        }
        Ok(None)
    }

    /// Takes a block of a group that is free.
    fn take_whole(&mut self, reader: &Reader<'_>, number: u64, block: u64) -> Result<()> {
        let volume = reader.volume;
        self.fresh.insert(volume.base(number) + block * volume.frag);
        if made(Mistake::ClusterStaysFree) {
            return Ok(());
        }
        let delta = self.tally(reader, number)?.set_free_of(volume, block, 0);
        self.note(number, &delta);
        Ok(())
    }

    fn maxcluster(&self, group: u64) -> u8 {
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        self.maxcluster.get(at).copied().unwrap_or(0)
    }

    fn set_maxcluster(&mut self, group: u64, most: u64) {
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        if let Some(entry) = self.maxcluster.get_mut(at) {
            *entry = u8::try_from(most).unwrap_or(u8::MAX);
        }
    }
}

/// The first of `count` free blocks in a row of a group, from block `from` on. The counts of
/// clusters tell whether to look; the map of fragments, what is free.
fn find(tally: &Tally, volume: &Volume, count: u64, from: u64) -> Option<u64> {
    let group = &tally.group;
    let sum = |len: u64| {
        let at = u64::from(group.raw.cg_clustersumoff) + 4 * len;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        group.raw.cg_clusteroff != 0 && i32::get(volume.order, &group.bytes, at) > 0
    };
    if !(count..=volume.contigsumsize()).any(sum) {
        return None;
    }
    let blocks = group.fragments / volume.frag;
    let some = |byte| byte == 0xff || byte != 0 && volume.frag < 8;
    let is_free =
        |block: &u64| u64::from(tally.free_of(volume, *block).count_ones()) == volume.frag;
    let free = group.blocks_where(from..blocks, volume.frag, some);
    let (mut first, mut next) = (0, None);
    for block in free.filter(is_free) {
        if next != Some(block) {
            first = block;
        }
        next = Some(block + 1);
        if block + 1 - first == count {
            return Some(first);
        }
    }
    None
}

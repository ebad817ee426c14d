//! Clusters: blocks in a row, of which 4.4BSD's cylinder groups keep count.

use super::Alloc;
use super::field::Field;
use crate::disk::ondisk::Stored;
use crate::disk::volume::Volume;
use crate::groups::mistakes::{Mistake, made};
use crate::groups::policy::Wish;
use crate::inodes::blocks::Reader;
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
            if self.summary.of(number)[1] < enough || u64::from(self.maxcluster(number)) < count {
                continue;
            }
            self.tally(reader, number)?;
            let found = self
                .field(volume, number, wish.owner())
                .and_then(|field| find(&field, volume, count, from / volume.frag));
            let Some(block) = found else {
                // What is kept may be given back.
                if from == 0 && self.kept.lowest().is_none() {
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

/// Returns the first of `count` free blocks in a row of a group, from block `from` on. The counts of
/// clusters tell whether to look; the map of fragments, what is free.
fn find(field: &Field<'_>, volume: &Volume, count: u64, from: u64) -> Option<u64> {
    let group = &field.tally.group;
    let sum = |len: u64| {
        let at = u64::from(group.raw.cg_clustersumoff) + 4 * len;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        group.raw.cg_clusteroff != 0 && i32::get(volume.order, &group.bytes, at) > 0
    };
    if !(count..=volume.contigsumsize()).any(sum) {
        return None;
    }
    let mut at = from;
    while let Some(block) = field.first_free(at..field.blocks()) {
        let len = field.row(block, count);
        if len >= count {
            return Some(block);
        }
        at = block + len.max(1);
    }
    None
}

//! Clusters: runs of consecutive blocks, which 4.4BSD's cylinder groups count.

use super::Alloc;
use super::field::Field;
use crate::disk::ondisk::Stored;
use crate::disk::volume::Volume;
use crate::groups::mistakes::{Mistake, made};
use crate::groups::policy::Wish;
use crate::inodes::blocks::Reader;
use volary_core::Result;

impl Alloc {
    /// Allocates `count` consecutive blocks, each a piece of its own (`ffs_clusteralloc`). Searches
    /// the wished group from the wished place on, then groups found by quadratic rehash, then all.
    /// Returns the first fragment, or `None` if there is no such cluster.
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
            // The disk's head should move in one direction, so blocks before the wish come last.
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
                // The bound holds only without reservations, because these may be dropped.
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

    /// Allocates a free block of a group.
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

/// Returns the first of `count` consecutive free blocks of a group, from block `from` on. The
/// counts of clusters tell whether a search can succeed. The map of fragments tells what is free.
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

//! Prefetch: reads records and directories into the cache, in the order in which they lie.

use crate::node::number_of;
use crate::ondisk::kind;
use crate::store::Store;
use volary_core::{Ctx, NodeId, Prefetch};
use volary_ondisk::ahead::{AHEAD_MAX, Stretch};

impl Store {
    /// Reads what the hint is about into the cache, as far as it can be read.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let goes_on = || cx.check_cancel().is_ok();
        let numbers = nodes.iter().map(|node| number_of(*node).0);
        let places = numbers
            .clone()
            .filter_map(|number| self.record_at(number).ok());
        let records = places.map(|at| (at, self.volume.record as u64));
        self.cache.prefetch_all(records.collect(), &goes_on);
        if what == Prefetch::Entries {
            let mut blocks = Vec::new();
            for number in numbers {
                self.add_entries(number, &mut blocks);
            }
            self.cache.prefetch_all(blocks, &goes_on);
        }
    }

    /// Adds where the blocks of a directory's index are.
    fn add_entries(&self, number: u64, blocks: &mut Vec<Stretch>) {
        let node = self.node_of(number).ok().filter(|node| node.is_dir());
        let stream = node.and_then(|node| {
            let found = self.stream(&node, kind::INDEX_ALLOCATION, &crate::dir::I30);
            found.ok().flatten()
        });
        let Some(stream) = stream else { return };
        let cluster = self.volume.cluster;
        let end = stream.size.min(AHEAD_MAX).div_ceil(cluster);
        // One whose runs are damaged is told of when it is listed.
        let _ = stream.each_run(self, None, (0, end), |run| {
            if let Some(place) = run.place {
                blocks.push((
                    place.saturating_mul(cluster),
                    run.len.saturating_mul(cluster),
                ));
            }
            Ok(())
        });
    }
}

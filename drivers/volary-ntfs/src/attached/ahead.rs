//! Prefetch: reads records and directories into the cache, in the order of their places on the
//! device.

use crate::directory::dir::I30;
use crate::disk::ondisk::kind;
use crate::files::node::{Node, number_of};
use crate::mft::records::Mft;
use volary_core::{Ctx, NodeId, Prefetch};
use volary_ondisk::ahead::{AHEAD_MAX, Stretch};

/// Prefetches records, and the indexes of directories.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'a> {
    mft: &'a Mft,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(mft: &'a Mft) -> Self {
        Self { mft }
    }

    /// Reads what the hint names into the cache, as far as it can be read. Errors are ignored.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let goes_on = || cx.check_cancel().is_ok();
        let numbers = nodes.iter().map(|node| number_of(*node).0);
        let places = numbers
            .clone()
            .filter_map(|number| self.mft.record_at(number).ok());
        let records = places.map(|at| (at, self.mft.volume().record as u64));
        self.mft.clusters().prefetch(records.collect(), &goes_on);
        if what == Prefetch::Entries {
            let mut blocks = Vec::new();
            for number in numbers {
                self.add_entries(number, &mut blocks);
            }
            self.mft.clusters().prefetch(blocks, &goes_on);
        }
    }

    /// Adds the places of the blocks of a directory's index.
    fn add_entries(&self, number: u64, blocks: &mut Vec<Stretch>) {
        let node = Node::of(self.mft, number).ok().filter(|node| node.is_dir());
        let stream = node.and_then(|node| {
            let found = node.stream(self.mft, kind::INDEX_ALLOCATION, &I30);
            found.ok().flatten()
        });
        let Some(stream) = stream else { return };
        let cluster = self.mft.volume().cluster;
        let end = stream.size.min(AHEAD_MAX).div_ceil(cluster);
        // Damaged runs are reported when the directory is listed.
        let _ = stream.each_run(self.mft, None, 0..end, |run| {
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

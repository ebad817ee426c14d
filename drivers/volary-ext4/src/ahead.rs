//! Reads inodes and directories before they are looked at, in the order in which they lie.

use crate::run::Spot;
use crate::store::Store;
use volary_core::{Ctx, FileKind, NodeId, Prefetch};
use volary_ondisk::ahead::{AHEAD_MAX, Stretch};

impl Store {
    /// Reads what the hint is about into the cache, as far as it can be read.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let goes_on = || cx.check_cancel().is_ok();
        let numbers = nodes
            .iter()
            .filter_map(|node| u32::try_from(node.ino.get()).ok());
        let numbers: Vec<u32> = numbers.collect();
        let block = self.volume.block;
        let places = numbers.iter().filter_map(|ino| self.inode_at(*ino).ok());
        let blocks = places.map(|at| (at / block * block, block));
        self.cache.prefetch_all(blocks.collect(), &goes_on);
        if what == Prefetch::Entries {
            let mut blocks = Vec::new();
            for ino in numbers {
                self.add_entries(ino, &mut blocks);
            }
            self.cache.prefetch_all(blocks, &goes_on);
        }
    }

    /// Adds where the entries of a directory are.
    fn add_entries(&self, ino: u32, blocks: &mut Vec<Stretch>) {
        let Ok(inode) = self.inode(ino) else { return };
        if inode.kind() != Some(FileKind::Dir) {
            return;
        }
        let block = self.volume.block;
        let end = inode.size.min(AHEAD_MAX).div_ceil(block);
        // One whose map is damaged is told of when it is listed.
        let _ = self.each_run(&inode, 0, end, |run| {
            if let Spot::Data(first) = run.spot {
                blocks.push((first.saturating_mul(block), run.len.saturating_mul(block)));
            }
            Ok(())
        });
    }
}

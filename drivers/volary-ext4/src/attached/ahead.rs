//! Reads inodes and directories before they are looked at, in the order in which they lie.

use crate::disk::run::Spot;
use crate::store::Store;
use volary_core::{Ctx, FileKind, NodeId, Prefetch};
use volary_ondisk::ahead::{AHEAD_MAX, Stretch};

/// What reads ahead: the inode tables, and the maps of directories.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'a> {
    store: &'a Store,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store }
    }

    /// Reads what the hint is about into the cache, as far as it can be read.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let goes_on = || cx.check_cancel().is_ok();
        let numbers = nodes
            .iter()
            .filter_map(|node| u32::try_from(node.ino.get()).ok());
        let numbers: Vec<u32> = numbers.collect();
        let block = self.store.volume().block;
        let places = numbers
            .iter()
            .filter_map(|ino| self.store.groups().inode_at(*ino).ok());
        let blocks = places.map(|at| (at / block * block, block));
        self.store.blocks().prefetch(blocks.collect(), &goes_on);
        if what == Prefetch::Entries {
            let mut blocks = Vec::new();
            for ino in numbers {
                self.add_entries(ino, &mut blocks);
            }
            self.store.blocks().prefetch(blocks, &goes_on);
        }
    }

    /// Adds where the entries of a directory are.
    fn add_entries(&self, ino: u32, blocks: &mut Vec<Stretch>) {
        let Ok(inode) = self.store.inodes().inode(ino) else {
            return;
        };
        if inode.kind() != Some(FileKind::Dir) {
            return;
        }
        let block = self.store.volume().block;
        let end = inode.size.min(AHEAD_MAX).div_ceil(block);
        // One whose map is damaged is told of when it is listed.
        let _ = self.store.map(&inode).each_run(0, end, |run| {
            if let Spot::Data(first) = run.spot {
                blocks.push((first.saturating_mul(block), run.len.saturating_mul(block)));
            }
            Ok(())
        });
    }
}

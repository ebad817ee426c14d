//! Reads inodes and directories before they are looked at, in the order in which they lie.

use crate::runs::Spot;
use crate::store::Store;
use volary_core::{Ctx, FileKind, NodeId, Prefetch};

/// Bytes that are read ahead for one hint, at most.
const AHEAD_MAX: u64 = 8 << 20;

/// Gaps that are read over.
const GAP: u64 = 64 << 10;

/// A stretch of the device, in bytes.
type Stretch = (u64, u64);

impl Store {
    /// Reads what the hint is about into the cache, as far as it can be read.
    pub(crate) fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) {
        let numbers = nodes
            .iter()
            .filter_map(|node| u32::try_from(node.ino.get()).ok());
        let numbers: Vec<u32> = numbers.collect();
        let block = self.volume.block;
        let places = numbers.iter().filter_map(|ino| self.inode_at(*ino).ok());
        let blocks = places.map(|at| (at / block * block, block));
        self.read_sorted(cx, blocks.collect());
        if what == Prefetch::Entries {
            let mut blocks = Vec::new();
            for ino in numbers {
                self.add_entries(ino, &mut blocks);
            }
            self.read_sorted(cx, blocks);
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

    fn read_sorted(&self, cx: &Ctx<'_>, mut blocks: Vec<Stretch>) {
        blocks.sort_unstable();
        let mut left = AHEAD_MAX;
        let mut whole: Option<Stretch> = None;
        for (at, len) in blocks {
            whole = match whole {
                Some((start, end)) if at <= end.saturating_add(GAP) => {
                    Some((start, end.max(at.saturating_add(len))))
                }
                before => {
                    self.read_ahead(cx, before, &mut left);
                    Some((at, at.saturating_add(len)))
                }
            };
        }
        self.read_ahead(cx, whole, &mut left);
    }

    /// Reads a stretch from its start to its end.
    fn read_ahead(&self, cx: &Ctx<'_>, stretch: Option<Stretch>, left: &mut u64) {
        let Some((start, end)) = stretch else { return };
        let len = (end - start).min(*left);
        if len > 0 && cx.check_cancel().is_ok() {
            *left -= len;
            self.cache.prefetch(start, len);
        }
    }
}

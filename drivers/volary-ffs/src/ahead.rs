//! Reads inodes and directories before they are looked at, in the order in which they lie.

use crate::attached::State;
use crate::blocks::Reader;
use crate::ondisk::CgHeader;
use crate::volume::Variant;
use volary_core::{Ctx, FileKind, NodeId, Prefetch};

/// Bytes of one directory that are read ahead, at most.
const AHEAD_MAX: u64 = 8 << 20;

/// Reads what the hint is about into the cache, as far as it can be read.
pub(crate) fn read(
    state: &State,
    reader: Reader<'_>,
    cx: &Ctx<'_>,
    nodes: &[NodeId],
    what: Prefetch,
) {
    let goes_on = || cx.check_cancel().is_ok();
    let volume = reader.volume;
    let mut places = Vec::with_capacity(nodes.len());
    for node in nodes {
        let ino = node.ino.get();
        let Some(at) = volume.inode_at(ino) else {
            continue;
        };
        places.push((at, volume.inode_size()));
        // Which inodes of it were written once stands in the head of a group.
        if volume.variant == Variant::Ufs2 {
            places.push((volume.head_at(ino / volume.ipg), CgHeader::SIZE as u64));
        }
    }
    reader.cache.prefetch_all(places, &goes_on);
    if what != Prefetch::Entries {
        return;
    }
    let mut blocks = Vec::new();
    for node in nodes {
        let inode = state.nodes.inode(&reader, node.ino.get());
        let Some(inode) = inode.ok().filter(|i| i.kind() == Some(FileKind::Dir)) else {
            continue;
        };
        // One whose map is damaged is told of when it is listed.
        let _ = reader.runs(&inode, 0, AHEAD_MAX, &mut |run| {
            blocks.extend(run.place.map(|place| (place, run.len)));
            Ok(())
        });
    }
    reader.cache.prefetch_all(blocks, &goes_on);
}

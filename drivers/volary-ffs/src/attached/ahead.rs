//! Prefetch of inodes and directories, sorted by their place on the device.

use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::Nodes;
use volary_core::{Ctx, FileKind, NodeId, Prefetch};
use volary_ondisk::ahead::{AHEAD_MAX, Stretch};

/// Reads what the hint names into the cache. Errors are ignored: the call that needs the data
/// reports them.
pub(crate) fn prefetch(
    known: &Nodes,
    reader: &Reader<'_>,
    cx: &Ctx<'_>,
    nodes: &[NodeId],
    what: Prefetch,
) {
    let goes_on = || cx.check_cancel().is_ok();
    let mut blocks = Vec::new();
    for node in nodes {
        add_inode(reader, node.ino.get(), &mut blocks);
    }
    reader.cache.prefetch_all(blocks, &goes_on);
    let mut blocks = Vec::new();
    for node in nodes {
        // Damage is reported by the call that needs the inode.
        if let Ok(inode) = known.inode(reader, node.ino.get()) {
            match what {
                Prefetch::Attributes => add_pointers(reader, &inode, &mut blocks),
                Prefetch::Entries => add_entries(reader, &inode, &mut blocks),
            }
        }
    }
    match what {
        Prefetch::Attributes => reader.cache.prefetch_each(blocks, &goes_on),
        Prefetch::Entries => reader.cache.prefetch_all(blocks, &goes_on),
    }
}

/// Adds the block of an inode and the head of its group. The head says whether the inode is in use.
fn add_inode(reader: &Reader<'_>, ino: u64, blocks: &mut Vec<Stretch>) {
    let volume = reader.volume;
    if let Some(at) = volume.inode_at(ino) {
        blocks.push((at / volume.fsize * volume.fsize, volume.fsize));
        blocks.push((volume.head_at(ino / volume.ipg), volume.fsize));
    }
}

/// Adds the first indirect block of a file, if it has one.
fn add_pointers(reader: &Reader<'_>, inode: &Inode, blocks: &mut Vec<Stretch>) {
    let volume = reader.volume;
    let first = inode.ib.first().copied().unwrap_or(0);
    if first != 0 && inode.has_blocks(volume) {
        blocks.push((first.saturating_mul(volume.fsize), volume.bsize));
    }
}

/// Adds the blocks of a directory.
fn add_entries(reader: &Reader<'_>, inode: &Inode, blocks: &mut Vec<Stretch>) {
    if inode.kind() != Some(FileKind::Dir) {
        return;
    }
    let _ = reader.runs(inode, 0, AHEAD_MAX, &mut |run| {
        blocks.extend(run.place.map(|place| (place, run.len)));
        Ok(())
    });
}

//! The order of writes.
//!
//! The Seventh Edition promised no order; its descendants write an inode before the entry that leads
//! to it. Here, the rules are those of soft updates (Ganger and Patt, 1994): what an address or an
//! entry leads to is on the disk before it; nothing is used again before the last way to it is gone
//! there; an old name goes after the new one came. All changes between two commits are an
//! *epoch*. A commit brings it to the disk in these steps, with a flush after each that wrote:
//!
//! 1. content, new directories' blocks, new indirect blocks: nothing on the disk leads there yet;
//! 2. inodes, with as many links as they may have while the epoch is brought to the disk;
//!    those of directories that were there as they were, but for links; addresses in indirect
//!    blocks that were there;
//! 3. inodes of directories that have grown: an entry may come behind their old end, in a sector that a
//!    rename takes another out of;
//! 4. sectors of directories;
//! 5. `..` of directories that were moved;
//! 6. sectors that a rename took an entry out of;
//! 7. inodes as they are, those that are free too;
//! 8. the free list and the superblock: only now may blocks that were given back hold the list.
//!
//! What was given back in the epoch can be taken again then. The list on the disk is right only when
//! the volume is detached: what is taken of it is written over before the superblock knows. What
//! a power cut leaves is mended by `fsck -p`: inodes without a name, links that are counted too high,
//! two names of a directory that was moved, the free list, totals.

use crate::change::alloc::Alloc;
use crate::change::epoch::{ADDITIONS, Epoch, PARENTS, POINTERS, REMOVALS};
use crate::change::node::{Node, Nodes, Opens};
use crate::disk::blocks::Reader;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{FS_ACTIVE, FS_OKAY, STATE, SUPER_AT, Variant};
use crate::disk::volume::{JAN_1_1980, Volume};
use volary_block::Stage;
use volary_core::{FileKind, Result, Time};

/// Inodes that may be changed before a commit.
const DIRTY_MAX: usize = 8192;
/// Blocks that may be taken or given back before a commit.
const BLOCKS_MAX: usize = 262_144;

/// Marks a superblock as cleanly left or not, at a time.
pub(crate) fn mark(volume: &Volume, head: &mut [u8], is_clean: bool, now: Time) {
    let (order, fields) = (volume.order, volume.variant.fields());
    // System V before Release 4 is known by a time that lies before its own.
    let least = match volume.variant {
        Variant::V7 => 0,
        Variant::SysV => JAN_1_1980.into(),
    };
    let secs = u32::try_from(now.secs.clamp(least, i32::MAX.into())).unwrap_or(0);
    order.put32(head, fields.time, secs);
    if let Some(fmod) = head.get_mut(fields.flags + 2) {
        *fmod = u8::from(!is_clean);
    }
    if volume.variant == Variant::SysV {
        let state = if is_clean {
            FS_OKAY.wrapping_sub(secs)
        } else {
            FS_ACTIVE
        };
        order.put32(head, STATE, state);
    }
}

/// Returns whether so much has been changed that it is time for a commit.
pub(crate) fn is_due(reader: &Reader<'_>, nodes: &Nodes, alloc: &Alloc, held_max: u64) -> bool {
    nodes.dirty() > DIRTY_MAX || alloc.held() > BLOCKS_MAX || reader.cache.held() > held_max
}

/// Brings the epoch to the disk and ends it. `head` is the superblock.
///
/// # Errors
/// `Io`, `Corrupt`: what is on the disk is what `fsck -p` mends.
pub(crate) fn commit(
    reader: &Reader<'_>,
    nodes: &mut Nodes,
    alloc: &mut Alloc,
    epoch: &mut Epoch,
    opens: &Opens,
    head: &mut [u8],
) -> Result<()> {
    let cache = reader.cache;
    step(reader, Stage::DATA)?;
    if !std::mem::take(&mut epoch.is_dirty) {
        return Ok(());
    }
    let dirty = nodes.all_dirty();
    let there = dirty.iter().filter_map(|&ino| nodes.get(ino));
    for node in there.filter(|node| !node.is_gone()) {
        let inode = if is_shown(node) {
            &node.disk
        } else {
            &node.mem
        };
        write(reader, inode, node.links_most())?;
    }
    cache.write_stage(Stage::DATA)?;
    step(reader, POINTERS)?;
    let there = dirty.iter().filter_map(|&ino| nodes.get(ino));
    for node in there.filter(|node| is_shown(node)) {
        write(reader, &node.mem, node.links_most())?;
    }
    clear_tails(reader, nodes, epoch)?;
    step(reader, Stage::DATA)?;
    for stage in [ADDITIONS, PARENTS, REMOVALS] {
        step(reader, stage)?;
    }
    for node in dirty.iter().filter_map(|&ino| nodes.get(ino)) {
        write(reader, &node.mem, 0)?;
    }
    step(reader, Stage::DATA)?;
    alloc.settle(reader)?;
    alloc.store(reader.volume, head);
    cache.write(SUPER_AT, head, Stage::DATA)?;
    step(reader, Stage::DATA)?;
    nodes.settle(opens);
    *epoch = Epoch::default();
    Ok(())
}

/// Writes a stage and makes it durable.
fn step(reader: &Reader<'_>, stage: Stage) -> Result<()> {
    reader.cache.write_stage(stage)?;
    reader.cache.flush_written()
}

/// Writes an inode, with at least so many links.
fn write(reader: &Reader<'_>, inode: &Inode, links: u32) -> Result<()> {
    let mut inode = inode.clone();
    inode.nlink = inode.nlink.max(u16::try_from(links).unwrap_or(u16::MAX));
    let bytes = inode.bytes(reader.volume);
    reader.cache.write(inode.at, &bytes, Stage::DATA)
}

/// Returns whether it is a directory that the disk has, so that its names show as soon as its inode
/// leads to them.
fn is_shown(node: &Node) -> bool {
    let was_dir = node.disk.kind() == Some(FileKind::Dir);
    was_dir && !node.is_gone()
}

/// Makes zeros of what is behind the end of files that were cut, in their last blocks.
fn clear_tails(reader: &Reader<'_>, nodes: &Nodes, epoch: &mut Epoch) -> Result<()> {
    let bsize = reader.volume.bsize;
    for ino in std::mem::take(&mut epoch.cut) {
        let Some(node) = nodes.get(ino).filter(|node| !node.is_gone()) else {
            continue;
        };
        let size = node.mem.size;
        let mut whole = node.mem.clone();
        whole.size = size.next_multiple_of(bsize);
        reader.runs(&whole, size..whole.size, &mut |run| {
            let zeros = vec![0; usize::try_from(run.len).unwrap_or(0)];
            match run.place {
                Some(place) => reader.cache.write(place, &zeros, Stage::DATA),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

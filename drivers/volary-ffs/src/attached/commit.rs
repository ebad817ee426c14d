//! The order of writes.
//!
//! The rules are those of soft updates (Ganger and Patt, 1994):
//!
//! - What a pointer leads to is on the disk before the pointer.
//! - Nothing is used again before the last pointer to it is gone from the disk.
//! - An old name is removed only after the new one is on the disk.
//!
//! All changes between two commits are an *epoch*. A commit brings the epoch to the disk in these
//! steps, with a flush after each step that wrote:
//!
//! 1. content, quota records, blocks of new directories, new indirect blocks, and zeroed UFS2
//!    inodes: nothing on the disk leads there yet;
//! 2. inodes, with the highest link count that they may have during the commit; existing
//!    directories keep their old inode but for the link count; pointers in existing indirect
//!    blocks; heads of groups in which more inodes count as initialised;
//! 3. directories' sectors, and inodes of directories that have grown;
//! 4. `..` of directories that were moved;
//! 5. sectors that a rename took an entry out of;
//! 6. all changed inodes in their final state, the freed ones too; maps and sums.
//!
//! Before all that, blocks that were taken in the epoch are moved into clusters (`realloc`),
//! because nothing on the disk points to them yet. After the commit, what the epoch freed can be
//! allocated again.
//!
//! `fsck -p` repairs what a power cut leaves: inodes without a name, link counts that are too high,
//! two names of a moved directory, and wrong maps, sums and quota records.

use crate::attached::head::Head;
use crate::change::epoch::{ADDITIONS, Epoch, PARENTS, POINTERS, REMOVALS};
use crate::groups::alloc::Alloc;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::{Node, Nodes, Opens};
use crate::quota::Quotas;
use volary_block::Stage;
use volary_core::{FileKind, Result, Time};

/// Inodes that may be changed before a commit.
const DIRTY_MAX: usize = 8192;
/// Extents of the volume that may be allocated or freed before a commit.
const PIECES_MAX: usize = 65_536;

/// Returns whether enough has changed that a commit is due.
pub(crate) fn is_due(reader: &Reader<'_>, nodes: &Nodes, alloc: &Alloc, held_max: u64) -> bool {
    nodes.dirty() > DIRTY_MAX || alloc.held() > PIECES_MAX || reader.cache.held() > held_max
}

/// A commit, and the parts of the volume that it brings to the disk.
pub(crate) struct Commit<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) nodes: &'a mut Nodes,
    pub(crate) alloc: &'a mut Alloc,
    pub(crate) epoch: &'a mut Epoch,
    pub(crate) quotas: &'a mut Quotas,
    pub(crate) opens: &'a Opens,
    pub(crate) head: &'a mut Head,
}

impl Commit<'_> {
    /// Brings the epoch to the disk and ends it.
    ///
    /// # Errors
    /// `Io`, `Corrupt`: `fsck -p` can then repair what is on the disk.
    pub(crate) fn run(self, now: Time) -> Result<()> {
        let Self {
            reader,
            nodes,
            alloc,
            epoch,
            quotas,
            opens,
            head,
        } = self;
        let cache = reader.cache;
        quotas.write(&reader, nodes)?;
        step(&reader, Stage::DATA)?;
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
            write(&reader, inode, node.links_most())?;
        }
        alloc.write_raised(&reader)?;
        cache.write_stage(Stage::DATA)?;
        step(&reader, POINTERS)?;
        let there = dirty.iter().filter_map(|&ino| nodes.get(ino));
        for node in there.filter(|node| is_shown(node)) {
            write(&reader, &node.mem, node.links_most())?;
        }
        zero_tails(&reader, nodes, epoch)?;
        cache.write_stage(Stage::DATA)?;
        for stage in [ADDITIONS, PARENTS, REMOVALS] {
            step(&reader, stage)?;
        }
        for node in dirty.iter().filter_map(|&ino| nodes.get(ino)) {
            write(&reader, &node.mem, 0)?;
        }
        alloc.settle(&reader)?;
        head.set_sums(reader.volume, alloc.summary.total(), now);
        cache.write(head.at, head.sealed(reader.volume), Stage::DATA)?;
        step(&reader, Stage::DATA)?;
        nodes.settle(opens);
        *epoch = Epoch::default();
        Ok(())
    }
}

/// Writes a stage and makes it durable.
fn step(reader: &Reader<'_>, stage: Stage) -> Result<()> {
    reader.cache.write_stage(stage)?;
    reader.cache.flush_written()
}

/// Writes an inode with a link count of at least `links`.
fn write(reader: &Reader<'_>, inode: &Inode, links: u32) -> Result<()> {
    let mut inode = inode.clone();
    inode.nlink = inode.nlink.max(i16::try_from(links).unwrap_or(i16::MAX));
    inode.store(reader.volume);
    reader.cache.write(inode.at, &inode.bytes, Stage::DATA)
}

/// Returns whether `node` is a directory that the disk already has. Its new names are visible as
/// soon as its inode leads to them.
fn is_shown(node: &Node) -> bool {
    let was_dir = node.disk.kind() == Some(FileKind::Dir);
    was_dir && !node.is_gone()
}

/// Writes zeros between the end of each truncated file and the end of its last block.
fn zero_tails(reader: &Reader<'_>, nodes: &Nodes, epoch: &mut Epoch) -> Result<()> {
    let volume = reader.volume;
    for ino in std::mem::take(&mut epoch.cut) {
        let Some(node) = nodes.get(ino).filter(|node| !node.is_gone()) else {
            continue;
        };
        if !node.mem.has_blocks(volume) || node.mem.size.is_multiple_of(volume.bsize) {
            continue;
        }
        let (size, mut whole) = (node.mem.size, node.mem.clone());
        let lbn = size / volume.bsize;
        whole.size = lbn * volume.bsize + node.mem.block_len(volume, lbn);
        let zeros = vec![0; usize::try_from(whole.size - size).unwrap_or(0)];
        reader.runs(&whole, size, zeros.len() as u64, &mut |run| {
            let zeros = zeros.get(..usize::try_from(run.len).unwrap_or(0));
            match run.place {
                Some(place) => reader
                    .cache
                    .write(place, zeros.unwrap_or_default(), Stage::DATA),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

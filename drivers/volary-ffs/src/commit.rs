//! The order of writes.
//!
//! The rules are those of soft updates (Ganger and Patt, 1994): what a pointer leads to is on
//! the disk before the pointer; nothing is used again before the last pointer to it is gone
//! there; an old name goes after the new one came. All changes between two commits are an
//! *epoch*. A commit brings it to the disk in these steps, with a flush after each that wrote:
//!
//! 1. content, records of quotas, new directories' blocks, new indirect blocks, UFS2's inodes made zero: nothing
//!    on the disk leads there yet;
//! 2. inodes, with as many links as they may have while the epoch is brought to the disk;
//!    those of directories that were there as they were, but for links; pointers in indirect
//!    blocks that were there; heads of groups of which more inodes count as written;
//! 3. directories' sectors, and inodes of directories that have grown;
//! 4. `..` of directories that were moved;
//! 5. sectors that a rename took an entry out of;
//! 6. inodes as they are, those that are free too; maps and sums.
//!
//! Before all that, blocks that were taken in the epoch are moved into clusters (`realloc`): nothing of them is
//! named on the disk. What was given back in the epoch can be taken again then. What a power cut leaves is
//! mended by `fsck -p`: inodes without a name, links that are counted too high, two names of
//! a directory that was moved, maps, sums and records of quotas that are wrong.

use crate::alloc::Alloc;
use crate::blocks::Reader;
use crate::inode::Inode;
use crate::node::{Node, Nodes, Opens};
use crate::ondisk::{FS_METACKHASH, Stored, Superblock, sb};
use crate::quota::Quotas;
use crate::tune::Changes;
use crate::volume::Volume;
use std::collections::{BTreeSet, HashSet};
use volary_block::Stage;
use volary_core::{FileKind, Result, Time};
use volary_ondisk::Moves;

/// Pointers in indirect blocks that the disk leads to.
pub(crate) const POINTERS: Stage = Stage(1);
/// Directories' sectors.
pub(crate) const ADDITIONS: Stage = Stage(2);
/// `..` of directories that were moved.
pub(crate) const PARENTS: Stage = Stage(3);
/// Sectors that a rename took an entry out of.
pub(crate) const REMOVALS: Stage = Stage(4);

/// Inodes that may be changed before a commit.
const DIRTY_MAX: usize = 8192;
/// Pieces of the volume that may be taken or given back before a commit.
const PIECES_MAX: usize = 65_536;

/// What a commit must know of the changes since the last.
#[derive(Default)]
pub(crate) struct Epoch {
    /// Sectors of directories that renames changed.
    pub(crate) moves: Moves,
    /// Directories that moved into others: their `..` comes to the disk before their old names go.
    pub(crate) moved: HashSet<u32>,
    /// Directories that were made.
    pub(crate) born: HashSet<u32>,
    /// Files that were cut: what is behind their end becomes zeros.
    pub(crate) cut: HashSet<u32>,
    /// Clusters of files, by their first blocks, of which a block was not put behind the one
    /// before.
    pub(crate) scattered: BTreeSet<(u32, u64)>,
    /// Whether anything was changed.
    pub(crate) is_dirty: bool,
}

/// The first superblock, as it is written.
pub(crate) struct Head {
    pub(crate) at: u64,
    bytes: Vec<u8>,
}

impl Head {
    pub(crate) fn new(volume: &Volume) -> Self {
        Self {
            at: volume.found.at,
            bytes: volume.found.bytes.clone(),
        }
    }

    /// Marks the volume as cleanly left or not.
    pub(crate) fn set_clean(&mut self, volume: &Volume, clean: bool) {
        i8::from(clean).put(volume.order, &mut self.bytes, sb::CLEAN);
        0_i8.put(volume.order, &mut self.bytes, sb::FMOD);
        if volume.is_freebsd {
            // Nobody believes hashes that are not kept up.
            let kept = volume.hashes.bits;
            let flags = volume.found.raw.fs_flags & !FS_METACKHASH;
            let flags = flags | if kept == 0 { 0 } else { FS_METACKHASH };
            flags.put(volume.order, &mut self.bytes, sb::FLAGS);
            kept.put(volume.order, &mut self.bytes, sb::METACKHASH);
        }
    }

    /// Returns the bytes to be written, with their check hash.
    pub(crate) fn sealed(&mut self, volume: &Volume) -> &[u8] {
        volume
            .hashes
            .seal_superblock(volume.order, self.at, &mut self.bytes);
        &self.bytes
    }

    /// Returns whether it says that the volume was cleanly left.
    pub(crate) fn is_clean(&self) -> bool {
        self.bytes.get(sb::CLEAN).is_some_and(|byte| byte & 1 == 1)
    }

    /// Brings other parameters in; returns all fields.
    pub(crate) fn change(&mut self, volume: &Volume, changes: &Changes) -> Superblock {
        let mut raw = Superblock::read(volume.order, &self.bytes);
        changes.apply(&mut raw);
        raw.write(volume.order, &mut self.bytes);
        raw
    }

    /// Brings a total in.
    pub(crate) fn set_total(&mut self, volume: &Volume, total: [i64; 4]) {
        put_total(volume, &mut self.bytes, total);
    }

    /// Brings the sums in.
    pub(crate) fn set_sums(&mut self, volume: &Volume, alloc: &Alloc, now: Time) {
        self.set_total(volume, alloc.total);
        if !volume.found.is_ufs2 {
            let secs = i32::try_from(now.secs).unwrap_or(0);
            secs.put(volume.order, &mut self.bytes, sb::OLD_TIME);
        }
        if volume.found.is_ufs2 || volume.found.has_new_fields() {
            now.secs.put(volume.order, &mut self.bytes, sb::TIME);
        }
    }
}

/// Brings the total of directories, free blocks, free inodes and free fragments into a
/// superblock.
fn put_total(volume: &Volume, bytes: &mut [u8], total: [i64; 4]) {
    let small = total.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
    if !volume.found.is_ufs2 {
        small.put(volume.order, bytes, sb::OLD_CSTOTAL);
    }
    if volume.found.is_ufs2 || volume.found.has_new_fields() {
        total.put(volume.order, bytes, sb::CSTOTAL);
    }
}

/// Returns whether so much has been changed that it is time for a commit.
pub(crate) fn is_due(reader: &Reader<'_>, nodes: &Nodes, alloc: &Alloc, held_max: u64) -> bool {
    nodes.dirty() > DIRTY_MAX || alloc.held() > PIECES_MAX || reader.cache.held() > held_max
}

/// Brings the epoch to the disk and ends it.
///
/// # Errors
/// `Io`, `Corrupt`: what is on the disk is what `fsck -p` mends.
pub(crate) fn commit(
    reader: &Reader<'_>,
    nodes: &mut Nodes,
    alloc: &mut Alloc,
    (epoch, quotas, opens): (&mut Epoch, &mut Quotas, &Opens),
    (head, now): (&mut Head, Time),
) -> Result<()> {
    let cache = reader.cache;
    quotas.write(reader, nodes)?;
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
    alloc.write_raised(reader)?;
    cache.write_stage(Stage::DATA)?;
    step(reader, POINTERS)?;
    let there = dirty.iter().filter_map(|&ino| nodes.get(ino));
    for node in there.filter(|node| is_shown(node)) {
        write(reader, &node.mem, node.links_most())?;
    }
    zero_tails(reader, nodes, epoch)?;
    cache.write_stage(Stage::DATA)?;
    for stage in [ADDITIONS, PARENTS, REMOVALS] {
        step(reader, stage)?;
    }
    for node in dirty.iter().filter_map(|&ino| nodes.get(ino)) {
        write(reader, &node.mem, 0)?;
    }
    alloc.settle(reader)?;
    head.set_sums(reader.volume, alloc, now);
    cache.write(head.at, head.sealed(reader.volume), Stage::DATA)?;
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
    inode.nlink = inode.nlink.max(i16::try_from(links).unwrap_or(i16::MAX));
    inode.store(reader.volume);
    reader.cache.write(inode.at, &inode.bytes, Stage::DATA)
}

/// Returns whether it is a directory that the disk has, so that its names show as soon as its inode
/// leads to them.
fn is_shown(node: &Node) -> bool {
    let was_dir = node.disk.kind() == Some(FileKind::Dir);
    was_dir && !node.is_gone()
}

/// What is behind the end of files that were cut, as far as they have room there.
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

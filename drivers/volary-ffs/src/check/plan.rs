//! What is to be repaired, and the repair itself.
//!
//! If the repair is interrupted, another check can repair the rest. Entries and copies of blocks
//! are written first, then pointers in indirect blocks, then inodes, then maps and sums, each
//! followed by a flush. The mark of a cleanly left volume is cleared first and set again last.

use super::chunk::Chunk;
use super::likely;
use crate::directory::dir::{Dir, d_type};
use crate::disk::ondisk::{DIRBLKSIZ, DIRECT_HEAD, Stored};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::sweep::{self, Slot};
use std::collections::{BTreeMap, BTreeSet};
use volary_block::Stage;
use volary_core::{Error, FileKind, Kind, Result};

/// The repair of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The entry is removed.
    Remove,
    /// The entry gets this type.
    Kind(FileKind),
    /// The entry gets this inode.
    Leads(u32),
}

/// The repair of an inode.
#[derive(Clone, Debug, Default)]
pub(super) struct Mend {
    pub(super) free: bool,
    pub(super) links: Option<i16>,
    pub(super) blocks: Option<u64>,
    pub(super) size: Option<u64>,
    pub(super) flags: Option<u32>,
    /// The extended attributes are removed.
    pub(super) bare: bool,
    /// Pointers behind the end are cleared.
    pub(super) cut: bool,
    /// Pointers in the inode, and their new values.
    pub(super) pointers: Vec<(Slot, u64)>,
    /// The fields that the inode had before the damage.
    pub(super) likely: Option<likely::Fields>,
}

/// A write that changes neither an entry nor an inode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// Copies `len` bytes from one place to the other.
    Copy { from: u64, to: u64, len: u64 },
    /// Writes the bytes at `at` again, with zeros for those that cannot be read.
    Again { at: u64, len: u64 },
    /// Sets a pointer in an indirect block.
    Pointer { at: u64, to: u64 },
}

/// All repairs of a round.
#[derive(Default)]
pub(super) struct Plan {
    /// Repairs of entries, by directory and byte in it.
    entries: BTreeMap<(u32, u64), Entry>,
    /// New contents of whole chunks, written before entries in them.
    chunks: BTreeMap<(u32, u64), Chunk>,
    /// Inodes with blocks that other inodes claim, or with pointers that are to change. The content
    /// of their blocks is repaired in a later round, when the blocks are theirs alone.
    pub(super) unsettled: BTreeSet<u32>,
    pub(super) inodes: BTreeMap<u32, Mend>,
    /// Copies of blocks, and then the pointers to them in indirect blocks.
    pub(super) copies: Vec<Write>,
    pub(super) pointers: Vec<Write>,
    /// The root directory is to be made anew.
    pub(super) root: bool,
    /// The first superblock is to be written.
    pub(super) head: bool,
    /// Maps and sums are to be rebuilt.
    pub(super) maps: bool,
    /// Holes of directories that are to be filled with free entries: directory and start, with the
    /// end.
    pub(super) holes: BTreeMap<(u32, u64), u64>,
    /// Inodes that are to get a name in `lost+found`.
    pub(super) lost: BTreeSet<u32>,
    /// Quotas are to be counted again.
    pub(super) quotas: bool,
    /// Replicas of the superblock that are to be written, by group.
    pub(super) replicas: BTreeSet<u64>,
}

impl Plan {
    pub(super) fn inode(&mut self, ino: u32) -> &mut Mend {
        self.inodes.entry(ino).or_default()
    }

    /// Plans the repair of an entry. A change of its inode gives way to any other repair.
    pub(super) fn entry(&mut self, dir: u32, at: u64, change: Entry) {
        let is_planned = self.entries.contains_key(&(dir, at));
        let is_last = matches!(change, Entry::Leads(_)) && is_planned;
        if !is_last && !self.unsettled.contains(&dir) {
            self.entries.insert((dir, at), change);
        }
    }

    /// Plans new content for a chunk.
    pub(super) fn chunk(&mut self, dir: u32, at: u64, chunk: Chunk) {
        if !self.unsettled.contains(&dir) {
            self.chunks.insert((dir, at), chunk);
        }
    }

    /// Returns whether anything must be repaired before the maps.
    pub(super) fn has_structures(&self) -> bool {
        let is_empty = self.entries.is_empty() && self.chunks.is_empty() && self.inodes.is_empty();
        !is_empty || self.root || !self.copies.is_empty() || !self.pointers.is_empty()
    }

    /// Repairs entries, pointers and inodes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(super) fn mend(&self, writer: &mut Writer<'_>) -> Result<()> {
        for (&(dir, at), chunk) in &self.chunks {
            match mend_chunk(writer, dir, at, chunk) {
                Err(e) if e == Kind::Corrupt || e == Kind::Stale => {}
                result => result?,
            }
        }
        for (&(dir, at), entry) in &self.entries {
            match mend_entry(writer, dir, at, *entry) {
                Err(e) if e == Kind::Corrupt || e == Kind::Stale => {}
                result => result?,
            }
        }
        for copy in &self.copies {
            writer.write(*copy)?;
        }
        writer.settle()?;
        for pointer in &self.pointers {
            writer.write(*pointer)?;
        }
        writer.settle()?;
        for (&ino, mend) in &self.inodes {
            mend_inode(writer, ino, mend)?;
        }
        writer.settle()
    }
}

/// Writes bytes that differ from the stored ones, and counts the sectors.
pub(super) struct Writer<'a> {
    pub(super) reader: Reader<'a>,
    /// Sectors that were written.
    pub(super) written: u64,
}

impl Writer<'_> {
    /// Writes `bytes` at `at` if they differ from the stored ones.
    ///
    /// # Errors
    /// `ReadOnly`; `Io`.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut there = vec![0; bytes.len()];
        self.reader.cache.read(at, &mut there)?;
        if there != bytes {
            let sectors = (at + bytes.len() as u64).div_ceil(512) - at / 512;
            self.written += sectors;
            self.reader.cache.write(at, bytes, Stage::DATA)?;
        }
        Ok(())
    }

    /// Writes a superblock as [`put`](Self::put) does, even if the old one cannot be read: a disk
    /// remaps bad sectors that are written whole.
    ///
    /// # Errors
    /// `ReadOnly`; `Io`.
    pub(super) fn put_superblock(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self.put(at, bytes) {
            Err(e) if e == Kind::Io => self.put_anew(at, bytes),
            done => done,
        }
    }

    fn put_anew(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let start = at - at % 512;
        let end = (at + bytes.len() as u64).next_multiple_of(512);
        let mut whole = vec![0; usize::try_from(end - start).unwrap_or(0)];
        sweep::read_by_sectors(&self.reader, start, &mut whole);
        let within = usize::try_from(at - start).unwrap_or(0);
        if let Some(part) = whole.get_mut(within..within + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        self.written += (end - start) / 512;
        self.reader.cache.write(start, &whole, Stage::DATA)
    }

    /// Performs a write.
    ///
    /// # Errors
    /// `ReadOnly`; `Io`, except for sectors that [`Write::Again`] replaces.
    fn write(&mut self, write: Write) -> Result<()> {
        let bytes = |len| vec![0; usize::try_from(len).unwrap_or(0)];
        match write {
            Write::Copy { from, to, len } => {
                let mut bytes = bytes(len);
                sweep::read_by_sectors(&self.reader, from, &mut bytes);
                self.written += len / 512;
                self.reader.cache.write(to, &bytes, Stage::DATA)
            }
            Write::Again { at, len } => {
                let mut bytes = bytes(len);
                sweep::read_by_sectors(&self.reader, at, &mut bytes);
                self.written += len / 512;
                self.reader.cache.write(at, &bytes, Stage::DATA)
            }
            Write::Pointer { at, to } => {
                let volume = self.reader.volume;
                let mut bytes = [0; 8];
                match sweep::width(volume.variant) {
                    8 => to.put(volume.order, &mut bytes, 0),
                    _ => u32::try_from(to)
                        .unwrap_or(0)
                        .put(volume.order, &mut bytes, 0),
                }
                let width = sweep::width(volume.variant);
                self.put(at, bytes.get(..width).unwrap_or_default())
            }
        }
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.reader.cache.commit()
    }
}

fn mend_chunk(writer: &mut Writer<'_>, dir: u32, at: u64, chunk: &Chunk) -> Result<()> {
    let inode = writer.reader.inode(dir.into())?;
    let place = Dir::new(writer.reader, &inode)?.place(at)?;
    writer.put(place, chunk)
}

fn mend_entry(writer: &mut Writer<'_>, dir: u32, at: u64, entry: Entry) -> Result<()> {
    let reader = writer.reader;
    let order = reader.volume.order;
    let inode = reader.inode(dir.into())?;
    let chunk = at - at % DIRBLKSIZ as u64;
    let place = Dir::new(reader, &inode)?.place(chunk)?;
    let mut bytes = [0; DIRBLKSIZ];
    reader.cache.read(place, &mut bytes)?;
    let within = usize::try_from(at - chunk).unwrap_or(0);
    match entry {
        Entry::Kind(kind) => d_type(kind).put(order, &mut bytes, within + 6),
        Entry::Leads(ino) => ino.put(order, &mut bytes, within),
        Entry::Remove => remove(order, &mut bytes, within),
    }
    writer.put(place, &bytes)
}

/// Removes an entry from a chunk.
fn remove(order: crate::disk::ondisk::Order, bytes: &mut [u8], at: usize) {
    let length = |bytes: &[u8], at: usize| u16::get(order, bytes, at + 4);
    let (mut before, mut here) = (None, 0);
    while here < at {
        before = Some(here);
        here += usize::from(length(bytes, here)).max(DIRECT_HEAD);
    }
    match before {
        Some(before) => {
            let end = at + usize::from(length(bytes, at));
            let len = u16::try_from(end - before).unwrap_or(0);
            len.put(order, bytes, before + 4);
        }
        None => 0_u32.put(order, bytes, at),
    }
}

fn mend_inode(writer: &mut Writer<'_>, ino: u32, mend: &Mend) -> Result<()> {
    let volume = writer.reader.volume;
    let mut inode = writer.reader.inode_as_it_is(ino.into())?;
    if mend.free {
        let free = Inode::free(volume, ino, inode.at, inode.generation);
        return writer.put(free.at, &free.bytes);
    }
    if let Some(fields) = &mend.likely {
        inode = fields.apply(&inode);
    }
    inode.size = mend.size.unwrap_or(inode.size);
    inode.flags = mend.flags.unwrap_or(inode.flags);
    if mend.bare {
        (inode.extsize, inode.extb) = (0, [0; 2]);
    }
    for &(slot, to) in &mend.pointers {
        let pointer = match slot {
            Slot::Direct(at) => inode.db.get_mut(at),
            Slot::Indirect(at) => inode.ib.get_mut(at),
            Slot::Attributes(at) => inode.extb.get_mut(at),
            Slot::At(_) => None,
        };
        if let Some(pointer) = pointer {
            *pointer = to;
        }
    }
    if mend.cut {
        cut(writer, &mut inode)?;
    }
    inode.nlink = mend.links.unwrap_or(inode.nlink);
    inode.blocks = mend.blocks.unwrap_or(inode.blocks);
    inode.store(volume);
    writer.put(inode.at, &inode.bytes)
}

/// Clears pointers that are behind the end of a file.
fn cut(writer: &mut Writer<'_>, inode: &mut Inode) -> Result<()> {
    let mut found = beyond(&writer.reader, inode)?;
    found.places.sort_unstable();
    for lbn in found.direct {
        if let Some(pointer) = inode.db.get_mut(lbn) {
            *pointer = 0;
        }
    }
    for level in found.levels {
        if let Some(pointer) = inode.ib.get_mut(level) {
            *pointer = 0;
        }
    }
    let width = sweep::width(writer.reader.volume.variant);
    for place in found.places {
        let zeros = [0_u8; 8];
        writer.put(place, zeros.get(..width).unwrap_or_default())?;
    }
    Ok(())
}

/// Pointers behind the end of a file.
#[derive(Default)]
pub(super) struct Beyond {
    direct: Vec<usize>,
    levels: Vec<usize>,
    places: Vec<u64>,
}

impl Beyond {
    pub(super) fn is_empty(&self) -> bool {
        self.direct.is_empty() && self.levels.is_empty() && self.places.is_empty()
    }
}

/// Looks for pointers behind the end of a file.
///
/// # Errors
/// `Corrupt` if a pointer on the way is outside of the volume; `Io`.
pub(super) fn beyond(reader: &Reader<'_>, inode: &Inode) -> Result<Beyond> {
    let volume = reader.volume;
    let mut found = Beyond::default();
    let count = inode.size.div_ceil(volume.bsize);
    let direct = inode.db.iter().enumerate();
    let direct = direct.filter(|(lbn, first)| *lbn as u64 >= count && **first != 0);
    found.direct = direct.map(|(lbn, _)| lbn).collect();
    let mut first = crate::disk::ondisk::UFS_NDADDR;
    for (level, &pointer) in inode.ib.iter().enumerate() {
        let span = volume.nindir.saturating_pow(level as u32 + 1);
        match pointer {
            0 => {}
            _ if first >= count => found.levels.push(level),
            _ if first + span > count => {
                behind(
                    reader,
                    inode,
                    pointer,
                    level as u32,
                    count - first,
                    &mut found,
                )?;
            }
            _ => {}
        }
        first += span;
    }
    Ok(found)
}

/// Does the same below an indirect block in which the file ends. `keep` is how many of its blocks
/// belong to the file.
fn behind(
    reader: &Reader<'_>,
    inode: &Inode,
    pointer: u64,
    level: u32,
    keep: u64,
    found: &mut Beyond,
) -> Result<()> {
    let volume = reader.volume;
    let block = reader.checked(inode, "di_ib", pointer, volume.frag, false)?;
    let width = sweep::width(volume.variant);
    let mut bytes = vec![0; usize::try_from(volume.bsize).unwrap_or(0)];
    let at = block.first * volume.fsize;
    reader.cache.read(at, &mut bytes)?;
    let each = volume.nindir.saturating_pow(level);
    let whole = usize::try_from(keep.div_ceil(each)).unwrap_or(usize::MAX);
    for (index, one) in bytes.chunks_exact(width).enumerate().skip(whole) {
        if one.iter().any(|&byte| byte != 0) {
            found.places.push(at + (index * width) as u64);
        }
    }
    let last = keep / each;
    if level > 0 && !keep.is_multiple_of(each) {
        let within = usize::try_from(last).unwrap_or(0) * width;
        let below = match width {
            8 => u64::get(volume.order, &bytes, within),
            _ => u32::get(volume.order, &bytes, within).into(),
        };
        if below != 0 {
            let keep = keep - last * each;
            behind(reader, inode, below, level - 1, keep, found)?;
        }
    }
    Ok(())
}

/// Returns the error for damage that a repair cannot mend.
pub(super) fn too_damaged(what: &str) -> Error {
    Error::note(Kind::Corrupt, format!("{what} cannot be made good"))
}

//! The volume under check: its layout, its FAT and its directories, with the
//! changes made so far.

use super::disk::{Disk, Rank};
use super::fat::{Fat, Link};
use crate::directory::slots::{Event, Scanner};
use crate::names::record::Record;
use crate::names::style::Names;
use crate::volume::judge::Judge;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, FREE, Raw};
use std::ops::ControlFlow;
use volary_core::{Result, Time};
use zerocopy::{FromBytes, IntoBytes};

/// No slot: the directory itself, or the root directory's entry.
pub(super) const NONE: u32 = u32::MAX;

/// Most names shown of a path; of a longer one the last.
const PATH_NAMES_MAX: usize = 100;

/// Bytes of a directory read at once.
const READ: usize = 128 << 10;

/// Returns whether a record, of a directory other than the root, is `.` or `..` in its
/// place.
pub(super) fn is_dots(record: &Record<'_>) -> bool {
    let name = record.short.DIR_Name;
    record.slot == 0 && name == DOT || record.slot == 1 && name == DOT_DOT
}

/// A directory that a walk has come to. The root is the first and its own
/// parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dir {
    /// Its first cluster; 0 for the fixed root directory.
    pub(super) cluster: u32,
    /// Clusters that are its own beyond doubt.
    pub(super) clusters: u32,
    /// The directory with its entry, by its number in the walk.
    pub(super) parent: u32,
    /// The first slot of its entry.
    pub(super) first: u32,
    /// The slot of its short entry.
    pub(super) slot: u32,
}

/// The volume under check.
pub(super) struct Volume {
    pub(super) layout: Layout,
    pub(super) disk: Disk,
    pub(super) fat: Fat,
    pub(super) names: Names,
    /// The UNIX extension is in the paper's layout.
    pub(super) paper: bool,
    pub(super) now: Time,
    /// A directory's first cluster, an index in its chain and the cluster
    /// there.
    hint: (u32, u32, u32),
}

impl Volume {
    pub(super) fn new(layout: Layout, disk: Disk, fat: Fat, names: Names, now: Time) -> Self {
        let paper = names.long == crate::names::record::LongStyle::Paper;
        Self {
            layout,
            disk,
            fat,
            names,
            paper,
            now,
            hint: (0, 0, 0),
        }
    }

    /// Goes on without the paper's layout.
    pub(super) fn forget_paper(&mut self) {
        self.paper = false;
        self.names.long = crate::names::record::LongStyle::Vfat;
    }

    /// Returns what is to make sense.
    pub(super) fn judge(&self) -> Judge<'_> {
        Judge {
            layout: &self.layout,
            paper: self.paper,
        }
    }

    /// Changes an entry of the FAT.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn set_link(&mut self, n: u32, value: u32) -> Result<()> {
        self.hint = (0, 0, 0);
        self.fat.set(n, value)
    }

    /// Ends a chain at a cluster.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn cut(&mut self, last: u32) -> Result<()> {
        let end = self.fat.end();
        self.set_link(last, end)
    }

    /// Returns the first cluster of an entry.
    pub(super) fn start(&self, entry: &DirEntry) -> u32 {
        entry.first_cluster(self.layout.is_fat32())
    }

    /// Clusters that `size` bytes need.
    pub(super) fn need(&self, size: u32) -> u32 {
        size.div_ceil(self.layout.cluster_len)
    }

    /// Slots in a cluster.
    pub(super) fn slots_per_cluster(&self) -> u32 {
        self.layout.cluster_len / ENTRY_LEN as u32
    }

    /// Slots of a directory.
    pub(super) fn slot_count(&self, dir: &Dir) -> u32 {
        if dir.cluster == 0 {
            self.layout.root_entries
        } else {
            dir.clusters.saturating_mul(self.slots_per_cluster())
        }
    }

    /// Returns bytes of a directory that are judged together.
    pub(super) fn unit(&self, dir: &Dir) -> usize {
        if dir.cluster == 0 {
            512
        } else {
            self.layout.cluster_len as usize
        }
    }

    /// Returns the cluster at an index of a chain, if it is that long.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn cluster_at(&mut self, start: u32, index: u32) -> Result<Option<u32>> {
        let (hint_start, hint_index, hint_cluster) = self.hint;
        let (mut at, mut cluster) = if hint_start == start && hint_index <= index {
            (hint_index, hint_cluster)
        } else {
            (0, start)
        };
        if !self.layout.is_cluster(cluster) {
            return Ok(None);
        }
        while at < index {
            match self.fat.link(cluster)? {
                Link::Next(n) => cluster = n,
                _ => return Ok(None),
            }
            at += 1;
        }
        self.hint = (start, at, cluster);
        Ok(Some(cluster))
    }

    /// Byte offset of a slot on the device.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn slot_offset(&mut self, dir: &Dir, slot: u32) -> Result<Option<u64>> {
        if slot >= self.slot_count(dir) {
            return Ok(None);
        }
        let at = u64::from(slot) * ENTRY_LEN as u64;
        if dir.cluster == 0 {
            return Ok(Some(self.layout.root_offset() + at));
        }
        let per = self.slots_per_cluster();
        let cluster = self.cluster_at(dir.cluster, slot / per)?;
        let within = u64::from(slot % per) * ENTRY_LEN as u64;
        Ok(cluster.map(|c| self.layout.cluster_offset(c) + within))
    }

    /// Returns the bytes of a slot; zeros where there is none.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn raw(&mut self, dir: &Dir, slot: u32) -> Result<Raw> {
        let mut raw = [0; ENTRY_LEN];
        if let Some(offset) = self.slot_offset(dir, slot)? {
            self.disk.read_dir(offset, &mut raw)?;
        }
        Ok(raw)
    }

    /// Returns the bytes of some slots; zeros where there are none.
    fn raws(&mut self, dir: &Dir, first: u32, count: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize * ENTRY_LEN];
        let mut slot = first;
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            let Some(offset) = self.slot_offset(dir, slot)? else {
                break;
            };
            let unit = match dir.cluster {
                0 => self.layout.root_entries,
                _ => self.slots_per_cluster(),
            };
            let run = (unit - slot % unit) as usize * ENTRY_LEN;
            let (part, more) = rest.split_at_mut(run.min(rest.len()));
            self.disk.read_dir(offset, part)?;
            slot += (part.len() / ENTRY_LEN) as u32;
            rest = more;
        }
        Ok(bytes)
    }

    /// Returns the short entry in a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn entry(&mut self, dir: &Dir, slot: u32) -> Result<DirEntry> {
        let raw = self.raw(dir, slot)?;
        Ok(zerocopy::transmute!(raw))
    }

    /// Changes a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn put_raw(&mut self, dir: &Dir, slot: u32, raw: &Raw, rank: Rank) -> Result<()> {
        match self.slot_offset(dir, slot)? {
            Some(offset) => self.disk.edit(offset, raw, rank),
            None => Ok(()),
        }
    }

    /// Changes the short entry in a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn put_entry(&mut self, dir: &Dir, slot: u32, entry: &DirEntry) -> Result<()> {
        match self.slot_offset(dir, slot)? {
            Some(offset) => self.disk.edit(offset, entry.as_bytes(), Rank::Late),
            None => Ok(()),
        }
    }

    /// Frees slots.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn free_slots(&mut self, dir: &Dir, first: u32, last: u32) -> Result<()> {
        for slot in first..=last {
            if let Some(offset) = self.slot_offset(dir, slot)? {
                self.disk.edit(offset, &[FREE], Rank::Late)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the record whose short entry is in a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn record<R>(
        &mut self,
        dir: &Dir,
        slot: u32,
        each: impl FnOnce(&Names, &Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let start = slot.saturating_sub(crate::names::long::PARTS_MAX as u32);
        let bytes = self.raws(dir, start, slot - start + 2)?;
        let mut scanner = Scanner::new(self.names.long);
        let mut each = Some(each);
        let names = &self.names;
        let mut found = |event: Event<'_>| match event {
            Event::Record(record) if record.slot + start == slot => match each.take() {
                Some(each) => ControlFlow::Break(each(names, &record)),
                None => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
        let mut rest = bytes.as_slice();
        // An end mark before the slot must not hide it.
        while let Some((one, more)) = rest.split_at_checked(ENTRY_LEN) {
            let mut one: Raw = Raw::read_from_bytes(one).unwrap_or([0; ENTRY_LEN]);
            if let Some(mark) = one.first_mut().filter(|b| **b == 0) {
                *mark = FREE;
            }
            if let ControlFlow::Break(r) = scanner.feed(&one, &mut found) {
                return Ok(Some(r));
            }
            rest = more;
        }
        match scanner.finish(found) {
            ControlFlow::Break(r) => Ok(Some(r)),
            ControlFlow::Continue(()) => Ok(None),
        }
    }

    /// Calls `each` with all records of a directory, up to its end.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn records(
        &mut self,
        dir: &Dir,
        mut each: impl FnMut(&Names, &Record<'_>),
    ) -> Result<()> {
        let mut reader = Reader::new(dir);
        let mut scanner = Scanner::new(self.names.long);
        let mut buf = Vec::new();
        while reader.fill(self, &mut buf)?.is_some() {
            let names = &self.names;
            let _ = scanner.feed(&buf, |event| {
                if let Event::Record(record) = event {
                    each(names, &record);
                }
                ControlFlow::<()>::Continue(())
            });
        }
        Ok(())
    }

    /// Returns the first slot of the record whose short entry is in a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn first_slot(&mut self, dir: &Dir, slot: u32) -> Result<u32> {
        let span = self.record(dir, slot, |_, r| r.slot - r.first_slot)?;
        Ok(slot - span.unwrap_or(0))
    }

    /// Returns the name of the entry in a slot.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn name(&mut self, dir: &Dir, slot: u32) -> Result<Vec<u8>> {
        let mut name = Vec::new();
        self.record(dir, slot, |names, record| names.show(record, &mut name))?;
        Ok(name)
    }

    /// Returns the path of the entry in a slot of a directory, or with [`NONE`] of
    /// the directory.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn path(&mut self, dirs: &[Dir], dir: u32, slot: u32) -> Result<Vec<u8>> {
        let mut names = Vec::new();
        let (mut dir, mut slot) = (dir, slot);
        while let Some(node) = dirs.get(dir as usize).copied() {
            if slot != NONE {
                names.push(self.name(&node, slot)?);
            }
            if names.len() > PATH_NAMES_MAX {
                names.pop();
                names.push("\u{2026}".into());
                break;
            }
            if dir == 0 {
                break;
            }
            (dir, slot) = (node.parent, node.slot);
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }
}

/// A stretch of a directory that lies in one piece on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Its first slot.
    pub(super) slot: u32,
    /// Where it lies on the device.
    pub(super) offset: u64,
}

/// Reads a directory in order, in long stretches.
pub(super) struct Reader {
    next: u32,
    left: u32,
    slot: u32,
    fixed: bool,
}

impl Reader {
    pub(super) fn new(dir: &Dir) -> Self {
        Self {
            next: dir.cluster,
            left: dir.clusters,
            slot: 0,
            fixed: dir.cluster == 0,
        }
    }

    /// Reads the next stretch.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn fill(&mut self, vol: &mut Volume, buf: &mut Vec<u8>) -> Result<Option<Piece>> {
        let (offset, len) = if self.fixed {
            let total = vol.layout.root_entries as usize * ENTRY_LEN;
            let done = self.slot as usize * ENTRY_LEN;
            (
                vol.layout.root_offset() + done as u64,
                (total - done).min(READ),
            )
        } else {
            self.stretch(vol)?
        };
        if len == 0 {
            return Ok(None);
        }
        buf.resize(len, 0);
        vol.disk.read_dir(offset, buf)?;
        let piece = Piece {
            slot: self.slot,
            offset,
        };
        self.slot += (len / ENTRY_LEN) as u32;
        Ok(Some(piece))
    }

    /// Returns the next clusters that follow each other on the device.
    fn stretch(&mut self, vol: &mut Volume) -> Result<(u64, usize)> {
        let len = vol.layout.cluster_len as usize;
        let first = self.next;
        let mut bytes = 0;
        while self.left > 0 && bytes + len <= READ.max(len) {
            let at = self.next;
            self.left -= 1;
            bytes += len;
            match vol.fat.link(at)? {
                Link::Next(n) => self.next = n,
                _ => self.left = 0,
            }
            if self.next != at + 1 {
                break;
            }
        }
        Ok((vol.layout.cluster_offset(first), bytes))
    }
}

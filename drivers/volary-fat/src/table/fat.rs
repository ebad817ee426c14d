//! The FAT, in memory as far as it is needed.
//!
//! The FAT that counts (the first, or FAT32's active one) is kept in segments
//! of [`SEGMENT`] bytes that are read when they are first looked at. Clean
//! segments are dropped when more than the bound are loaded; dirty ones stay
//! until [`Table::write`], because a commit decides when they may reach the
//! disk. The other copies are written by [`Table::write_copies`] alone.
//! What the disk has of a dirty segment is kept beside it, to tell what of it
//! must be written before the rest (see [`joins`](crate::table::joins)).
//!
//! A segment is read from all copies. Where they differ, those of the others are
//! kept beside it (see [`twofold`](crate::table::twofold)), and each copy is written as
//! it is: what one has and the other lacks stays on the disk for a check.
//!
//! One lock covers all segments. It is never held while the device works.

use crate::table::copies;
use crate::table::joins::{Before, Change};
pub(crate) use crate::table::links::{Link, entry, meaning, set_entry};
use crate::table::segments::{Entries, SEGMENT, UNIT, differing};
use crate::volume::layout::{FatKind, Layout};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use volary_block::Reservations;
use volary_core::{BlockDevice, Error, Kind, Result};

/// Most reservations of a volume.
const RESERVATIONS_MAX: usize = 1024;

/// In [`Inner::free`]: nobody has counted this segment.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The FAT of one volume.
pub(crate) struct Table {
    pub(crate) dev: Arc<dyn BlockDevice>,
    pub(crate) kind: FatKind,
    /// The highest cluster number.
    pub(crate) last: u32,
    /// Bytes of a cluster.
    pub(crate) cluster_len: u32,
    pub(crate) offset: u64,
    /// Bytes of the FAT that have a meaning, in whole sectors.
    len: u64,
    sector: usize,
    /// Byte offsets of the other copies, if they are kept alike.
    pub(crate) copies: Vec<u64>,
    segments_max: usize,
    pub(crate) layout: Layout,
    /// Whether it was cleanly left, once that is known.
    pub(crate) clean: OnceLock<bool>,
    /// Something could be read only from another copy.
    pub(crate) damaged: AtomicBool,
    /// The copies of a volume that was cleanly left differ somewhere.
    pub(crate) forked: AtomicBool,
    /// How many segments are dirty, to be asked without the lock.
    dirty_count: AtomicUsize,
    inner: Mutex<Inner>,
}

/// What the lock covers.
pub(crate) struct Inner {
    segments: Vec<Option<Box<Segment>>>,
    loaded: usize,
    hand: usize,
    dirty: BTreeSet<usize>,
    /// Segments that differ from the other copies, or may.
    touched: BTreeSet<usize>,
    /// Free clusters of each segment, or [`UNKNOWN`].
    pub(crate) free: Vec<u32>,
    /// Free clusters of the volume, if they are known.
    pub(crate) free_total: Option<u32>,
    /// An estimate of the lowest free cluster.
    pub(crate) low: u32,
    /// What is kept for files that grow.
    pub(crate) kept: Reservations,
    /// So often no long stretch is searched for.
    pub(crate) rest: u32,
}

/// A part of the FAT, as it is stored.
pub(crate) struct Segment {
    bytes: Vec<u8>,
    /// The same of the other copies, in their order, where any differs.
    others: Vec<Vec<u8>>,
    /// A bit for each [`UNIT`] that the disk does not have yet.
    dirty: u128,
    /// What the disk has, if the segment is among the dirty ones.
    before: Option<Before>,
    used: bool,
}

impl Table {
    /// Returns the FAT that `layout` describes, with at most `memory` bytes of clean
    /// segments. Reads nothing.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, layout: &Layout, memory: u64) -> Self {
        let sector = u64::from(layout.sector_len);
        let need = layout.kind.fat_len(layout.cluster_count);
        let len = need.next_multiple_of(sector).min(layout.fat_len());
        let count = usize::try_from(len.div_ceil(SEGMENT as u64)).unwrap_or(0);
        let offset = layout.fat_offset(layout.active_fat);
        let copies = layout.copies().into_iter().filter(|&c| c != offset);
        Self {
            dev,
            kind: layout.kind,
            last: layout.last_cluster(),
            cluster_len: layout.cluster_len,
            offset,
            len,
            sector: layout.sector_len as usize,
            copies: copies.collect(),
            segments_max: usize::try_from(memory / SEGMENT as u64).unwrap_or(0).max(2),
            layout: layout.clone(),
            clean: OnceLock::new(),
            damaged: AtomicBool::new(false),
            forked: AtomicBool::new(false),
            dirty_count: AtomicUsize::new(0),
            inner: Mutex::new(Inner {
                segments: std::iter::repeat_with(|| None).take(count).collect(),
                loaded: 0,
                hand: 0,
                dirty: BTreeSet::new(),
                touched: BTreeSet::new(),
                free: vec![UNKNOWN; count],
                free_total: None,
                low: 2,
                kept: Reservations::new(RESERVATIONS_MAX, 1),
                rest: 0,
            }),
        }
    }

    /// Returns the segment of a cluster's entry and its index there.
    pub(crate) fn place(&self, cluster: u32) -> (usize, u32) {
        self.entries().place(cluster)
    }

    /// Returns where its entries are.
    pub(crate) fn entries(&self) -> Entries {
        Entries {
            kind: self.kind,
            last: self.last,
        }
    }

    /// The lock, once segment `index` is loaded.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn lock(&self, index: usize) -> Result<MutexGuard<'_, Inner>> {
        loop {
            let mut inner = self.inner.lock();
            match inner.segments.get_mut(index) {
                Some(Some(segment)) => {
                    segment.used = true;
                    return Ok(inner);
                }
                Some(None) => {}
                None => return Err(Kind::Corrupt.into()),
            }
            // The other copies of what was changed are out of date.
            let compare = !inner.touched.contains(&index);
            drop(inner);
            let segment = Box::new(self.read_segment(index, compare)?);
            let mut inner = self.inner.lock();
            inner.make_room(self.segments_max);
            if let Some(place @ None) = inner.segments.get_mut(index) {
                *place = Some(segment);
                inner.loaded += 1;
            }
        }
    }

    /// The lock, whatever is loaded.
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Reads a segment; with `compare`, from all copies.
    fn read_segment(&self, index: usize, compare: bool) -> Result<Segment> {
        let (at, len) = self.extent_of(index);
        let mut bytes = vec![0; len];
        let lost = copies::read(&*self.dev, self.offset, &self.copies, at, &mut bytes)?;
        if !lost.is_empty() {
            self.damaged.store(true, Ordering::Release);
        }
        let others = match compare {
            true => self.others(index, &mut bytes)?,
            false => Vec::new(),
        };
        Ok(Segment {
            bytes,
            others,
            dirty: 0,
            before: None,
            used: true,
        })
    }

    /// Byte offset in the FAT and length of a segment.
    pub(crate) fn extent_of(&self, index: usize) -> (u64, usize) {
        let at = index as u64 * SEGMENT as u64;
        let len = self.len.saturating_sub(at).min(SEGMENT as u64);
        (at, len as usize)
    }

    fn check(&self, cluster: u32) -> Result<()> {
        if (2..=self.last).contains(&cluster) {
            return Ok(());
        }
        let expected = format!("a cluster from 2 to {}", self.last);
        Err(Error::corrupt(
            "cluster number",
            self.offset,
            cluster.to_string(),
            expected,
        ))
    }

    /// Returns how far the chain runs on from `cluster` without a jump: the number of
    /// clusters with it, at most `max`, and what the FAT says of the last. May
    /// stop earlier, at the end of a segment and where copies of the FAT differ.
    ///
    /// # Errors
    /// `Corrupt` for a cluster that does not exist; `Io`.
    pub(crate) fn follow(&self, cluster: u32, max: u32) -> Result<(u32, Link)> {
        self.check(cluster)?;
        let (segment, index) = self.place(cluster);
        let inner = self.lock(segment)?;
        let bytes = inner.bytes(segment);
        let forked = self.forked.load(Ordering::Acquire);
        let mut len = 0;
        loop {
            let link = self.meaning(entry(self.kind, bytes, index + len));
            let fork = forked && inner.is_fork(self.kind, segment, index + len);
            len += 1;
            let on = link == Link::Next(cluster + len) && !fork;
            if !on || len >= max || self.place(cluster + len).0 != segment {
                return Ok((len, link));
            }
        }
    }

    /// Returns what a value means.
    pub(crate) fn meaning(&self, value: u32) -> Link {
        self.entries().meaning(value)
    }

    /// Returns the error for a chain that leads to `cluster`, of which the FAT says
    /// `link`.
    pub(crate) fn broken(&self, cluster: u32, link: Link) -> Error {
        let at = self.offset + u64::from(cluster) * u64::from(self.kind.bits()) / 8;
        Error::corrupt(
            "FAT entry",
            at,
            format!("{link:?} in a chain, for cluster {cluster}"),
            "the next cluster or the end",
        )
    }

    /// Makes the chain of `cluster` go on at `next`, or end there.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    pub(crate) fn set_next(&self, cluster: u32, next: Option<u32>) -> Result<()> {
        self.check(cluster)?;
        let (segment, index) = self.place(cluster);
        let value = next.unwrap_or(self.kind.mask());
        self.lock(segment)?.set(self, segment, index, value);
        Ok(())
    }

    /// Returns bytes of segments that wait for [`write`](Self::write), each twice: as
    /// it is and as it was.
    pub(crate) fn dirty_len(&self) -> u64 {
        (self.dirty_count.load(Ordering::Acquire) * SEGMENT * 2) as u64
    }

    /// Writes what has changed to the FAT that counts. No flush at the end; one
    /// in the middle if a chain that the disk leads to is changed in one sector
    /// and goes on in another, so that no power cut leaves it leading to free
    /// clusters or to another's. Nothing may change the table meanwhile.
    ///
    /// # Errors
    /// `Io`; what was not written stays dirty.
    pub(crate) fn write(&self) -> Result<()> {
        let steps = self.write_first_step()?;
        if steps {
            self.write_second_halves()?;
        }
        loop {
            let next = self.inner.lock().first_dirty(self, steps);
            let Some((index, units, bytes)) = next else {
                return Ok(());
            };
            self.write_units(index, units, &bytes)?;
            self.write_others(index)?;
            let mut inner = self.inner.lock();
            inner.written(index);
            self.dirty_count.store(inner.dirty.len(), Ordering::Release);
        }
    }

    /// Writes the first of two steps and makes it durable, if it takes two.
    fn write_first_step(&self) -> Result<bool> {
        let dirty = {
            let inner = self.inner.lock();
            let mut changes = inner.dirty.iter().filter_map(|&i| inner.change(self, i));
            if !changes.any(|c| c.takes_steps()) {
                return Ok(false);
            }
            inner.dirty.clone()
        };
        for index in dirty {
            let step = self
                .inner
                .lock()
                .change(self, index)
                .map(|c| (c.first_step(), c.before.bytes().to_vec()));
            if let Some(((bytes, units), from)) = step {
                self.write_halves(index, &from, &bytes)?;
                self.write_units(index, units, &bytes)?;
            }
        }
        self.dev.flush()?;
        Ok(true)
    }

    /// Brings split entries half of the way to the second step.
    fn write_second_halves(&self) -> Result<()> {
        if self.kind != FatKind::Fat12 {
            return Ok(());
        }
        let step = self
            .inner
            .lock()
            .change(self, 0)
            .map(|c| (c.first_step().0, c.after.to_vec()));
        match step {
            Some((from, to)) => self.write_halves(0, &from, &to),
            None => Ok(()),
        }
    }

    /// Writes one half of what changes in split entries, and all else, and
    /// makes that durable, if both halves of any change.
    fn write_halves(&self, index: usize, from: &[u8], to: &[u8]) -> Result<()> {
        let Some(mid) = self.halves(from, to) else {
            return Ok(());
        };
        self.write_units(index, differing(from, &mid), &mid)?;
        self.dev.flush()
    }

    /// Writes the sectors of a segment that hold these units.
    fn write_units(&self, index: usize, units: u128, bytes: &[u8]) -> Result<()> {
        self.write_to(self.offset, index, units, bytes)
    }

    /// The same to the copy that begins at `base`.
    fn write_to(&self, base: u64, index: usize, units: u128, bytes: &[u8]) -> Result<()> {
        let (at, _) = self.extent_of(index);
        for (start, end) in stretches(units, self.sector, bytes.len()) {
            if let Some(part) = bytes.get(start..end) {
                self.dev.write_at(base + at + start as u64, part)?;
            }
        }
        Ok(())
    }

    /// Writes what has changed of a segment to the other copies, each as it is, if
    /// they differ.
    fn write_others(&self, index: usize) -> Result<()> {
        let (units, others) = self.inner.lock().others_dirty(index);
        for (base, bytes) in self.copies.iter().zip(others) {
            self.write_to(*base, index, units, &bytes)?;
        }
        Ok(())
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn flush(&self) -> Result<()> {
        self.dev.flush()
    }

    /// Brings the other copies up to date where this one has changed; no
    /// flush. Everything must have been written before.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_copies(&self) -> Result<()> {
        let touched = std::mem::take(&mut self.inner.lock().touched);
        if self.copies.is_empty() {
            return Ok(());
        }
        for index in touched {
            let (at, _) = self.extent_of(index);
            let bytes = match self.inner.lock().loaded_bytes(index) {
                Some(bytes) => bytes,
                None => self.read_segment(index, false)?.bytes,
            };
            for copy in &self.copies {
                self.dev.write_at(copy + at, &bytes)?;
            }
        }
        Ok(())
    }

    /// Returns whether all of `bits` are set in entry 1.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn has_marks(&self, bits: u32) -> Result<bool> {
        let inner = self.lock(0)?;
        Ok(entry(self.kind, inner.bytes(0), 1) & bits == bits)
    }

    /// Sets or clears `bits` in entry 1, where FAT16 and FAT32 keep their
    /// marks. [`write`](Self::write) brings it to the disk.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn mark(&self, bits: u32, on: bool) -> Result<()> {
        let mut inner = self.lock(0)?;
        let old = entry(self.kind, inner.bytes(0), 1);
        let new = if on { old | bits } else { old & !bits };
        if old == new {
            return Ok(());
        }
        inner.set(self, 0, 1, new);
        Ok(())
    }
}

impl Inner {
    /// Returns a loaded segment as it is stored; empty if it is not loaded.
    pub(crate) fn bytes(&self, segment: usize) -> &[u8] {
        match self.segments.get(segment) {
            Some(Some(s)) => &s.bytes,
            _ => &[],
        }
    }

    /// Returns what an entry of a loaded segment says.
    pub(crate) fn link(&self, table: &Table, segment: usize, index: u32) -> Link {
        table.meaning(entry(table.kind, self.bytes(segment), index))
    }

    /// Changes an entry of a loaded segment. FAT32's upper four bits stay.
    pub(crate) fn set(&mut self, table: &Table, segment: usize, index: u32, value: u32) {
        let Some(Some(s)) = self.segments.get_mut(segment) else {
            return;
        };
        let clean = s.before.is_none();
        let before = s.before.get_or_insert_with(|| Before::new(&s.bytes));
        if value == 0 {
            before.note_freed(index);
        } else if value == table.kind.mask() && entry(table.kind, &s.bytes, index) != 0 {
            before.note_cut(index);
        }
        let (at, len) = set_entry(table.kind, &mut s.bytes, index, value);
        for other in &mut s.others {
            set_entry(table.kind, other, index, value);
        }
        let alike = s.others.is_empty();
        for unit in at / UNIT..=(at + len.max(1) - 1) / UNIT {
            s.dirty |= 1 << (unit % 128);
        }
        if clean {
            self.dirty.insert(segment);
            if alike {
                self.touched.insert(segment);
            }
            table.dirty_count.store(self.dirty.len(), Ordering::Release);
        }
    }

    fn loaded_bytes(&self, index: usize) -> Option<Vec<u8>> {
        let segment = self.segments.get(index)?.as_ref()?;
        Some(segment.bytes.clone())
    }

    /// Returns what has changed in a dirty segment.
    fn change<'a>(&'a self, table: &Table, index: usize) -> Option<Change<'a>> {
        let segment = self.segments.get(index)?.as_ref()?;
        Some(Change {
            entries: table.entries(),
            segment: index,
            before: segment.before.as_ref()?,
            after: &segment.bytes,
            dirty: segment.dirty,
        })
    }

    /// Returns the first dirty segment, which of its units are to be written, and its
    /// bytes; `second`: after the first of two steps.
    fn first_dirty(&self, table: &Table, second: bool) -> Option<(usize, u128, Vec<u8>)> {
        let change = self.change(table, *self.dirty.first()?)?;
        let units = if second {
            change.second_step()
        } else {
            change.dirty
        };
        Some((change.segment, units, change.after.to_vec()))
    }

    /// Returns what is dirty of a segment, and what the other copies have there.
    fn others_dirty(&self, index: usize) -> (u128, Vec<Vec<u8>>) {
        match self.segments.get(index) {
            Some(Some(s)) => (s.dirty, s.others.clone()),
            _ => (0, Vec::new()),
        }
    }

    /// Returns the values of an entry of a loaded segment in the other copies, if any differs.
    pub(crate) fn other_values(&self, kind: FatKind, segment: usize, index: u32) -> Vec<u32> {
        match self.segments.get(segment) {
            Some(Some(s)) => s.others.iter().map(|o| entry(kind, o, index)).collect(),
            _ => Vec::new(),
        }
    }

    fn written(&mut self, index: usize) {
        if let Some(Some(s)) = self.segments.get_mut(index) {
            s.dirty = 0;
            s.before = None;
        }
        self.dirty.remove(&index);
    }

    /// Drops clean segments that were not used of late until one more fits.
    fn make_room(&mut self, max: usize) {
        let mut looks = 2 * self.segments.len();
        while self.loaded >= max && looks > 0 {
            looks -= 1;
            self.hand = (self.hand + 1) % self.segments.len().max(1);
            let Some(place) = self.segments.get_mut(self.hand) else {
                return;
            };
            match place {
                Some(s) if s.used => s.used = false,
                Some(s) if s.dirty == 0 => {
                    *place = None;
                    self.loaded -= 1;
                }
                _ => {}
            }
        }
    }
}

/// Returns the dirty stretches of a segment of `len` bytes, in whole sectors.
fn stretches(dirty: u128, sector: usize, len: usize) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for start in (0..len).step_by(sector) {
        let units = sector / UNIT;
        let mask = ((1u128 << units) - 1) << (start / UNIT);
        if dirty & mask == 0 {
            continue;
        }
        let end = (start + sector).min(len);
        match out.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => out.push((start, end)),
        }
    }
    out
}

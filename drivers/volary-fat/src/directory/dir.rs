//! Directories: where their slots lie, and reading and writing them.

use crate::base::epoch::{Epoch, Step, Stop};
use crate::base::store::Store;
use crate::directory::index::{Index, Span, span_of};
use crate::directory::slots::{Event, Scanner, begin_of};
use crate::names::hash::hash_bytes;
use crate::names::keys::Scratch;
use crate::names::long::PARTS_MAX;
use crate::names::record::{LongStyle, Record};
use crate::names::style::Names;
use crate::table::runs::Runs;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, ENTRY_LEN, FREE};
use std::ops::ControlFlow;
use volary_block::{PAGE, Stage};
use volary_core::{Error, Kind, Result, is_zero};

/// Bytes that are read at a time when a directory is read through.
const CHUNK: usize = 32 << 10;

/// Bytes that are read first: one record, with its long name, is often all
/// that is looked for.
const NEAR: usize = 1 << 10;

/// Most bytes that a directory grows by ahead of need.
const GROW_MAX: u32 = 32 << 10;

/// Most slots that a record takes, the paper's tail with them.
const RECORD_MAX: usize = 22;

/// What is said of directories that cannot grow, whatever room the volume has.
const ROOT_FULL: &str = "the root directory is full; put it into another directory";
const DIR_FULL: &str = "the directory is full, with 65536 slots; put it into another directory";

/// A directory's content.
pub(crate) struct Dir {
    /// First cluster; 0 for the root.
    pub(crate) first: u32,
    /// Its clusters, all known; none for the fixed root.
    pub(crate) runs: Runs,
    /// What it holds, once that has been looked at.
    pub(crate) index: Option<Box<Index>>,
}

impl Dir {
    /// Slots that there is room for.
    pub(crate) fn capacity(&self, store: &Store) -> u32 {
        if self.is_fixed(store) {
            return store.layout.root_entries;
        }
        let per_cluster = store.layout.cluster_len / ENTRY_LEN as u32;
        let slots = u64::from(self.runs.clusters()) * u64::from(per_cluster);
        slots.min(DIR_ENTRIES_MAX.into()) as u32
    }

    /// Returns whether all of its clusters are known.
    pub(crate) fn is_ready(&self, clusters_max: u32) -> bool {
        self.runs.is_whole() || self.runs.clusters() >= clusters_max
    }

    fn is_fixed(&self, store: &Store) -> bool {
        self.first == 0 && !store.layout.is_fat32()
    }

    /// Returns where a slot lies on the device, and how many bytes follow in one piece.
    fn place(&self, store: &Store, slot: u32) -> Result<(u64, u64)> {
        let at = u64::from(slot) * ENTRY_LEN as u64;
        if self.is_fixed(store) {
            let left = u64::from(store.layout.root_entries) * ENTRY_LEN as u64;
            let left = left.checked_sub(at).filter(|&l| l > 0);
            return Ok((store.layout.root_offset() + at, left.ok_or(Kind::Corrupt)?));
        }
        let cluster_len = u64::from(store.layout.cluster_len);
        let index = u32::try_from(at / cluster_len).map_err(|_| Kind::Corrupt)?;
        let (cluster, more) = self.runs.find(index).ok_or(Kind::Corrupt)?;
        let skip = at % cluster_len;
        let offset = store.layout.cluster_offset(cluster) + skip;
        Ok((offset, u64::from(more) * cluster_len - skip))
    }

    /// Returns the byte offset of a slot on the device.
    ///
    /// # Errors
    /// `Corrupt` past the end.
    pub(crate) fn offset(&self, store: &Store, slot: u32) -> Result<u64> {
        Ok(self.place(store, slot)?.0)
    }

    /// Returns the byte offsets of the sectors that slots lie in.
    ///
    /// # Errors
    /// `Corrupt` past the end.
    pub(crate) fn sectors(&self, store: &Store, first: u32, count: u32) -> Result<Vec<u64>> {
        let mut out = Vec::with_capacity(2);
        let len = u64::from(store.layout.sector_len);
        for slot in first..first + count {
            let sector = self.offset(store, slot)? / len;
            if out.last() != Some(&sector) {
                out.push(sector);
            }
        }
        Ok(out)
    }

    /// Reads slots from `slot` on: fills `buf` as far as there are any, and
    /// gives how many bytes that was.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(&self, store: &Store, slot: u32, buf: &mut [u8]) -> Result<usize> {
        let left = self.capacity(store).saturating_sub(slot) as usize * ENTRY_LEN;
        let want = buf.len().min(left);
        let mut done = 0;
        while done < want {
            let (offset, len) = self.place(store, slot + (done / ENTRY_LEN) as u32)?;
            let len = (want - done).min(usize::try_from(len).unwrap_or(usize::MAX));
            let part = buf.get_mut(done..done + len).ok_or(Kind::Invalid)?;
            store.cache.read(offset, part)?;
            done += len;
        }
        Ok(want)
    }

    /// Reads the record that stands at `span`, and gives it to `f`. `None` if
    /// there is none.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn record<R>(
        &self,
        store: &Store,
        span: Span,
        f: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut raw = [0; RECORD_MAX * ENTRY_LEN];
        let len = (span.len() as usize).min(RECORD_MAX) * ENTRY_LEN;
        let buf = raw.get_mut(..len).unwrap_or_default();
        let got = self.read(store, span.first, buf)?;
        let mut scanner = Scanner::new(store.long);
        let mut f = Some(f);
        let mut each = |event: Event<'_>| match (event, f.take()) {
            (Event::Record(mut r), Some(f)) => {
                r.first_slot += span.first;
                r.slot += span.first;
                r.last_slot += span.first;
                ControlFlow::Break(f(&r))
            }
            (_, kept) => {
                f = kept;
                ControlFlow::Continue(())
            }
        };
        let flow = match scanner.feed(buf.get(..got).unwrap_or_default(), &mut each) {
            ControlFlow::Continue(()) => scanner.finish(&mut each),
            found => found,
        };
        Ok(flow.break_value())
    }

    /// Finds the record that a name, given in its folded form, leads to, in a
    /// directory with an index, and gives it to `f`.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn find<R>(
        &self,
        store: &Store,
        names: &Names,
        folded: &[u8],
        mut f: impl FnMut(&Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(index) = &self.index else {
            return Err(Kind::Invalid.into());
        };
        let mut scratch = Scratch::default();
        for span in index.find(hash_bytes(folded) as u32) {
            let found = self.record(store, span, |r| {
                let is_it = span_of(r) == span && names.leads_to(r, folded, &mut scratch);
                is_it.then(|| f(r))
            })?;
            if let Some(Some(r)) = found {
                return Ok(Some(r));
            }
        }
        Ok(None)
    }

    /// Reads the record whose short entry stands in `slot`, and gives it to `f`.
    /// `None` if none does.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn record_at<R>(
        &self,
        store: &Store,
        slot: u32,
        f: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut raw = [[0; ENTRY_LEN]; RECORD_MAX];
        let before = (slot as usize).min(PARTS_MAX);
        let room = raw.get_mut(..before + 2).unwrap_or_default();
        let got = self.read(store, slot - before as u32, room.as_flattened_mut())?;
        let slots = raw.get(..got / ENTRY_LEN).unwrap_or_default();
        // The paper's layout has no mark of where a record begins.
        let start = match store.long {
            LongStyle::Vfat => begin_of(slots, before),
            LongStyle::Paper => 0,
        };
        let first = slot - (before - start) as u32;
        let mut scanner = Scanner::new(store.long);
        let mut f = Some(f);
        let mut each = |event: Event<'_>| match shift(event, first) {
            Event::Record(r) if r.slot >= slot => {
                let f = f.take().filter(|_| r.slot == slot);
                ControlFlow::Break(f.map(|f| f(&r)))
            }
            _ => ControlFlow::Continue(()),
        };
        let bytes = slots.get(start..).unwrap_or_default().as_flattened();
        let flow = match scanner.feed(bytes, &mut each) {
            ControlFlow::Continue(()) => scanner.finish(&mut each),
            found => found,
        };
        Ok(flow.break_value().flatten())
    }

    /// Reads slots from `from` on as events, until `each` has enough or there
    /// are no more. Slot numbers are those of the directory.
    ///
    /// # Errors
    /// `Io`, and what `each` breaks off with.
    pub(crate) fn scan(
        &self,
        store: &Store,
        from: u32,
        mut each: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut each = |event: Event<'_>| each(shift(event, from));
        let mut scanner = Scanner::new(store.long);
        let mut buf = vec![0; NEAR];
        let mut slot = from;
        loop {
            let got = self.read(store, slot, &mut buf)?;
            if got == 0 {
                let _ = scanner.finish(&mut each);
                return Ok(());
            }
            let flow = scanner.feed(buf.get(..got).unwrap_or_default(), &mut each);
            if flow.is_break() || scanner.ended() {
                return Ok(());
            }
            slot += (got / ENTRY_LEN) as u32;
            buf.resize(CHUNK.min(self.capacity(store) as usize * ENTRY_LEN), 0);
        }
    }

    /// Makes the index, unless there is one. Returns how many bytes of memory a new one takes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn load(&mut self, store: &Store, names: &Names) -> Result<Option<u64>> {
        if self.index.is_some() {
            return Ok(None);
        }
        let mut index = Box::new(Index::default());
        index.end = self.capacity(store);
        let mut scratch = Scratch::default();
        self.scan(store, 0, |event| {
            match event {
                Event::Record(r) => index.enter(names, &r, &mut scratch),
                Event::Orphan { first, count } => index.take(first, count),
                Event::End(slot) => index.end = slot,
                Event::Free(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        index.garbage = self.has_garbage(store, index.end)?;
        let memory = index.memory();
        self.index = Some(index);
        Ok(Some(memory))
    }

    fn has_garbage(&self, store: &Store, end: u32) -> Result<bool> {
        let mut buf = vec![0; CHUNK];
        let mut slot = end;
        loop {
            let got = self.read(store, slot, &mut buf)?;
            if got == 0 {
                return Ok(false);
            }
            if buf.get(..got).is_some_and(|got| !is_zero(got)) {
                return Ok(true);
            }
            slot += (got / ENTRY_LEN) as u32;
        }
    }

    /// Writes zeros to all slots from the end mark on: they are free already,
    /// but an entry put at the end must find an end mark after it.
    fn clear_garbage(&mut self, store: &Store, epoch: &Epoch) -> Step<()> {
        let capacity = self.capacity(store);
        let Some(index) = self.index.as_mut().filter(|i| i.garbage) else {
            return Ok(());
        };
        index.garbage = false;
        let zeros = [0; ENTRY_LEN];
        for slot in index.end..capacity {
            let offset = self.offset(store, slot)?;
            store.cache.write(offset, &zeros, epoch.stage(self.first))?;
        }
        Err(Stop::Commit)
    }

    /// Finds `count` free slots in a row, making the directory longer if need
    /// be, and gives the first. They are not marked as used.
    ///
    /// # Errors
    /// `NoSpace` if the volume or the directory is full.
    pub(crate) fn room(&mut self, store: &Store, epoch: &Epoch, count: u32) -> Step<u32> {
        let capacity = self.capacity(store);
        let Some(index) = self.index.as_mut() else {
            return Err(Kind::Invalid.into());
        };
        let first = index.find_free(count, capacity);
        if first + count > index.end && index.garbage {
            self.clear_garbage(store, epoch)?;
        }
        if first + count > capacity {
            self.grow(store, epoch, first + count - capacity)?;
        }
        Ok(first)
    }

    /// Adds clusters for `slots` more slots.
    fn grow(&mut self, store: &Store, epoch: &Epoch, slots: u32) -> Step<()> {
        if self.is_fixed(store) {
            return Err(Error::note(Kind::NoSpace, ROOT_FULL).into());
        }
        if self.capacity(store) + slots > DIR_ENTRIES_MAX {
            return Err(Error::note(Kind::NoSpace, DIR_FULL).into());
        }
        let last = self.runs.last().ok_or(Kind::Corrupt)?;
        let clusters = (slots * ENTRY_LEN as u32).div_ceil(store.layout.cluster_len);
        // A directory that is large already takes more at once, so that its
        // clusters and those of its files do not lie in turns.
        let ahead = (self.runs.clusters() / 2).min(GROW_MAX / store.layout.cluster_len);
        let room = DIR_ENTRIES_MAX.saturating_sub(self.capacity(store)) * ENTRY_LEN as u32;
        let wish = ahead.min(room / store.layout.cluster_len);
        let more = match store.table.allocate_after(last, wish.max(clusters)) {
            Ok(more) => more,
            Err(_) => store.or_commit(store.table.allocate_after(last, clusters))?,
        };
        let done = store
            .zero_new_clusters(&more, epoch.is_born(self.first))
            .and_then(|()| store.table.set_next(last, more.first()));
        if let Err(e) = done {
            store.free_later(more.as_slice(), None);
            return Err(e.into());
        }
        epoch.note_grown(self.first);
        self.runs.append(more);
        Ok(())
    }

    /// Looks at slots, so that changing them later needs no device.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn touch(&self, store: &Store, first: u32, count: u32) -> Result<()> {
        let mut slot = first;
        while slot < first + count {
            let (offset, len) = self.place(store, slot)?;
            store.cache.view(offset, ENTRY_LEN, |_| ())?;
            let page = PAGE as u64 - offset % PAGE as u64;
            slot += (page.min(len) / ENTRY_LEN as u64).max(1) as u32;
        }
        Ok(())
    }

    /// Writes slots that were touched before. If that fails nevertheless, the
    /// volume takes no more changes: what is in memory is not trusted then.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write(
        &self,
        store: &Store,
        first: u32,
        slots: &[[u8; ENTRY_LEN]],
        stage: Stage,
    ) -> Result<()> {
        let bytes = slots.as_flattened();
        let mut done = 0;
        while done < bytes.len() {
            let (offset, len) = self.place(store, first + (done / ENTRY_LEN) as u32)?;
            let len = (bytes.len() - done).min(usize::try_from(len).unwrap_or(usize::MAX));
            let part = bytes.get(done..done + len).unwrap_or_default();
            let written = store.cache.write(offset, part, stage);
            store.or_fail(written)?;
            done += len;
        }
        Ok(())
    }

    /// Marks slots as free on the disk; as [`write`](Self::write).
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn erase(&self, store: &Store, span: Span, stage: Stage) -> Result<()> {
        for slot in span.first..=span.last {
            let offset = self.offset(store, slot)?;
            let erased = store.cache.update(offset, 1, stage, |b| b.fill(FREE));
            store.or_fail(erased)?;
        }
        Ok(())
    }
}

fn shift(event: Event<'_>, by: u32) -> Event<'_> {
    match event {
        Event::Record(mut r) => {
            r.first_slot += by;
            r.slot += by;
            r.last_slot += by;
            Event::Record(r)
        }
        Event::Free(slot) => Event::Free(slot + by),
        Event::Orphan { first, count } => Event::Orphan {
            first: first + by,
            count,
        },
        Event::End(slot) => Event::End(slot + by),
    }
}

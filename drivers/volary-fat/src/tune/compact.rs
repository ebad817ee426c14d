//! Compaction: each file's data in one piece, at the start of the volume.
//!
//! A file is moved whole, to free clusters: its data is copied, its new chain
//! is written and made durable, then its entry is changed, which takes effect
//! at one moment, and only then its old clusters are free. A file that lies
//! above a gap that is too small for it goes by way of a larger one. A file
//! for which there is no stretch of its length stays as it is.
//!
//! Directories that hold directories stay, because `..` in those says where
//! they are; others move like files, with their `.` changed in the copy.

use super::free::Free;
use super::items::{Item, collect};
use crate::directory::slots::entry_at;
use crate::table::fat::{Link, Table};
use crate::table::runs::{Run, Runs};
use crate::table::twofold::Of;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{DOT, DirEntry, ENTRY_LEN};
use volary_core::{BlockDevice, Fact, Kind, Progress, Result};
use zerocopy::IntoBytes;

/// Bytes that are copied at a time.
const COPY_LEN: u64 = 1 << 20;
/// Moves that share their flushes.
const BATCH_MAX: usize = 1024;

/// A compaction, ready to begin.
pub(super) struct Compaction<'a> {
    dev: &'a dyn BlockDevice,
    layout: &'a Layout,
    table: &'a Table,
    items: Vec<Item>,
    free: Free,
    batch: Vec<Move>,
    moved: u64,
}

/// A file whose data and chain are in their new place, but not its entry.
struct Move {
    item: usize,
    to: u32,
    old: Vec<Run>,
}

impl<'a> Compaction<'a> {
    /// Looks at the whole volume.
    ///
    /// # Errors
    /// `Corrupt` for a volume that `check` should see first; `Io`.
    pub(super) fn new(
        dev: &'a dyn BlockDevice,
        layout: &'a Layout,
        table: &'a Table,
    ) -> Result<Self> {
        let mut items = collect(dev, layout, table)?;
        items.sort_unstable_by_key(|i| i.first);
        let mut free = Free::default();
        for (first, len) in free_stretches(layout, table)? {
            free.give(first, len);
        }
        Ok(Self {
            dev,
            layout,
            table,
            items,
            free,
            batch: Vec::new(),
            moved: 0,
        })
    }

    /// Moves files until no move makes it better.
    ///
    /// # Errors
    /// `Interrupted` between moves, with all in order; `Io`.
    pub(super) fn run(mut self, progress: &dyn Progress) -> Result<Vec<Fact>> {
        let before = self.in_pieces();
        let result = self.passes(progress);
        self.finish_batch()?;
        result?;
        Ok(vec![
            Fact::number("files and directories", self.items.len() as u64, ""),
            Fact::number("in several pieces before", before, ""),
            Fact::number("in several pieces now", self.in_pieces(), ""),
            Fact::number("moved", self.moved, "clusters"),
        ])
    }

    /// Each pass moves in the order of the disk. A pass in which nothing went
    /// lower or together is the last: so there is an end.
    fn passes(&mut self, progress: &dyn Progress) -> Result<()> {
        loop {
            let mut better = false;
            for item in 0..self.items.len() {
                progress.progress("compact", item as u64, self.items.len() as u64)?;
                better |= self.improve(item)?;
            }
            self.finish_batch()?;
            if !better {
                return Ok(());
            }
            self.items.sort_unstable_by_key(|i| i.first);
        }
    }

    /// Moves a file to a better place, if there is one.
    fn improve(&mut self, index: usize) -> Result<bool> {
        let Some(&item) = self.items.get(index) else {
            return Ok(false);
        };
        if item.pinned {
            return Ok(false);
        }
        let end = if item.pieces > 1 {
            u32::MAX
        } else {
            item.first
        };
        if let Some(to) = self.place(item.len, end)? {
            self.relocate(index, to)?;
            return Ok(true);
        }
        if item.pieces > 1 || self.free.just_below(item.first).is_none() {
            return Ok(false);
        }
        self.slide(index)
    }

    /// Returns the lowest stretch for `len` clusters; what the batch gives back counts
    /// once it is finished.
    fn place(&mut self, len: u32, end: u32) -> Result<Option<u32>> {
        if let found @ Some(_) = self.free.lowest(len, end) {
            return Ok(found);
        }
        self.finish_batch()?;
        Ok(self.free.lowest(len, end))
    }

    /// Moves a file down into a gap that is smaller than it is, by way of a
    /// free stretch elsewhere.
    fn slide(&mut self, index: usize) -> Result<bool> {
        let Some(&item) = self.items.get(index) else {
            return Ok(false);
        };
        let Some(aside) = self.place(item.len, u32::MAX)? else {
            return Ok(false);
        };
        self.relocate(index, aside)?;
        self.finish_batch()?;
        // The gap and the file's old place have grown together.
        let Some(to) = self.free.lowest(item.len, item.first) else {
            return Ok(false);
        };
        self.relocate(index, to)?;
        Ok(true)
    }

    /// Copies a file to the free stretch that starts at `to`.
    fn relocate(&mut self, index: usize, to: u32) -> Result<()> {
        let Some(&item) = self.items.get(index) else {
            return Ok(());
        };
        if item.dir || self.batch.len() >= BATCH_MAX {
            self.finish_batch()?;
        }
        let mut old = Runs::from_first(item.first, Of::Unknown);
        old.load_all(self.table)?;
        self.copy(old.as_slice(), to)?;
        if item.dir {
            self.point_to_itself(to)?;
        }
        self.table.take_run(to, item.len)?;
        self.free.take(to, item.len);
        self.moved += u64::from(item.len);
        self.batch.push(Move {
            item: index,
            to,
            old: old.as_slice().to_vec(),
        });
        if item.dir {
            self.finish_batch()?;
        }
        Ok(())
    }

    fn copy(&self, from: &[Run], to: u32) -> Result<()> {
        let cluster = u64::from(self.layout.cluster_len);
        let mut buf = vec![0; COPY_LEN as usize];
        for run in from {
            let source = self.layout.cluster_offset(run.first);
            let target = self.layout.cluster_offset(to + run.at);
            let len = u64::from(run.len) * cluster;
            for at in (0..len).step_by(COPY_LEN as usize) {
                let part = (len - at).min(COPY_LEN) as usize;
                let part = buf.get_mut(..part).unwrap_or_default();
                self.dev.read_at(source + at, part)?;
                self.dev.write_at(target + at, part)?;
            }
        }
        Ok(())
    }

    /// Changes `.` of a directory's copy, to which nothing leads as yet.
    fn point_to_itself(&self, to: u32) -> Result<()> {
        let at = self.layout.cluster_offset(to);
        let dot = self.read_entry(at)?;
        if dot.DIR_Name == DOT {
            self.write_entry(at, dot, to)?;
        }
        Ok(())
    }

    /// Makes the moves of the batch take effect.
    fn finish_batch(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.table.write()?;
        self.dev.flush()?;
        let batch = std::mem::take(&mut self.batch);
        for m in &batch {
            let Some(item) = self.items.get_mut(m.item) else {
                continue;
            };
            item.first = m.to;
            item.pieces = 1;
            let item = *item;
            let entry = self.read_entry(item.entry)?;
            self.write_entry(item.entry, entry, m.to)?;
            if item.dir {
                self.follow_directory(&m.old, m.to);
            }
        }
        self.dev.flush()?;
        for run in batch.iter().flat_map(|m| &m.old) {
            self.table.free_run(*run)?;
            self.free.give(run.first, run.len);
        }
        Ok(())
    }

    /// Entries that stood in a directory that was moved stand in its copy now.
    fn follow_directory(&mut self, old: &[Run], to: u32) {
        let cluster = u64::from(self.layout.cluster_len);
        for run in old {
            let from = self.layout.cluster_offset(run.first);
            let end = from + u64::from(run.len) * cluster;
            let target = self.layout.cluster_offset(to + run.at);
            for item in &mut self.items {
                if (from..end).contains(&item.entry) {
                    item.entry = target + (item.entry - from);
                }
            }
        }
    }

    fn read_entry(&self, at: u64) -> Result<DirEntry> {
        let mut raw = [0; ENTRY_LEN];
        self.dev.read_at(at, &mut raw)?;
        entry_at(&raw).ok_or_else(|| Kind::Corrupt.into())
    }

    fn write_entry(&self, at: u64, mut entry: DirEntry, first: u32) -> Result<()> {
        entry.set_first_cluster(first, self.layout.is_fat32());
        self.dev.write_at(at, entry.as_bytes())
    }

    fn in_pieces(&self) -> u64 {
        self.items.iter().filter(|i| i.pieces > 1).count() as u64
    }
}

/// Returns the free stretches of a volume, in order.
fn free_stretches(layout: &Layout, table: &Table) -> Result<Vec<(u32, u32)>> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    for cluster in 2..=layout.last_cluster() {
        if table.follow(cluster, 1)?.1 != Link::Free {
            continue;
        }
        match out.last_mut() {
            Some((first, len)) if *first + *len == cluster => *len += 1,
            _ => out.push((cluster, 1)),
        }
    }
    Ok(out)
}

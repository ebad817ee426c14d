//! What lies on a volume: every file and directory that owns clusters.

use crate::directory::slots::{Event, Scanner};
use crate::names::record::LongStyle;
use crate::table::fat::{Link, Table};
use crate::table::runs::Runs;
use crate::table::twofold::Of;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN};
use std::ops::ControlFlow;
use volary_core::{BlockDevice, Error, Result};

/// A file or directory that owns clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Byte offset on the device of its short entry.
    pub(super) entry: u64,
    /// Its first cluster.
    pub(super) first: u32,
    /// How many clusters it has.
    pub(super) len: u32,
    /// In how many pieces.
    pub(super) pieces: u32,
    /// Whether it is a directory.
    pub(super) dir: bool,
    /// Whether it must stay: `..` in its subdirectories says where it is, or its `.`
    /// stands in another slot than the first.
    pub(super) pinned: bool,
}

/// Collects items; every cluster may belong to one of them only.
struct Collector<'a> {
    dev: &'a dyn BlockDevice,
    layout: &'a Layout,
    table: &'a Table,
    owned: Vec<u64>,
    items: Vec<Item>,
}

/// Returns all items but the root directory.
///
/// # Errors
/// `Corrupt` for anything that `check` should see first; `Io`.
pub(super) fn collect(dev: &dyn BlockDevice, layout: &Layout, table: &Table) -> Result<Vec<Item>> {
    let words = layout.cluster_count as usize / 64 + 1;
    let mut all = Collector {
        dev,
        layout,
        table,
        owned: vec![0; words],
        items: Vec::new(),
    };
    all.root()?;
    let mut next = 0;
    while let Some(&item) = all.items.get(next) {
        if item.dir {
            let pinned = all.directory(item.first)?;
            if let Some(item) = all.items.get_mut(next) {
                item.pinned = pinned;
            }
        }
        next += 1;
    }
    Ok(all.items)
}

impl Collector<'_> {
    fn root(&mut self) -> Result<()> {
        if self.layout.is_fat32() {
            self.claim(self.layout.root_cluster)?;
            self.directory(self.layout.root_cluster)?;
            return Ok(());
        }
        let offset = self.layout.root_offset();
        let len = self.layout.root_entries as usize * ENTRY_LEN;
        let mut scanner = Scanner::new(LongStyle::Vfat);
        self.stretch(&mut scanner, offset, len as u64).map(|_| ())
    }

    /// Takes note of what a directory holds; whether there are directories in it, or
    /// its `.` is not where it would be changed.
    fn directory(&mut self, first: u32) -> Result<bool> {
        let mut runs = Runs::from_first(first, Of::Dir);
        runs.load_all(self.table)?;
        let cluster = u64::from(self.layout.cluster_len);
        let mut scanner = Scanner::new(LongStyle::Vfat);
        let mut dot = [0; ENTRY_LEN];
        self.dev
            .read_at(self.layout.cluster_offset(first), &mut dot)?;
        let mut subdirs = dot.first_chunk() != Some(&DOT);
        for run in runs.as_slice() {
            for n in 0..run.len {
                let offset = self.layout.cluster_offset(run.first + n);
                subdirs |= self.stretch(&mut scanner, offset, cluster)?;
            }
        }
        Ok(subdirs)
    }

    /// Takes note of the entries in a stretch of the device.
    fn stretch(&mut self, scanner: &mut Scanner, offset: u64, len: u64) -> Result<bool> {
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        self.dev.read_at(offset, &mut bytes)?;
        let base = u64::from(scanner.slot());
        let mut found: Vec<(u64, DirEntry)> = Vec::new();
        let _: ControlFlow<()> = scanner.feed(&bytes, |event| {
            if let Event::Record(r) = event
                && !r.short.is_label()
                && r.short.DIR_Name != DOT
                && r.short.DIR_Name != DOT_DOT
            {
                found.push((
                    offset + (u64::from(r.slot) - base) * ENTRY_LEN as u64,
                    r.short,
                ));
            }
            ControlFlow::Continue(())
        });
        let mut subdirs = false;
        for (entry, short) in found {
            subdirs |= short.is_dir();
            self.item(entry, &short)?;
        }
        Ok(subdirs)
    }

    fn item(&mut self, entry: u64, short: &DirEntry) -> Result<()> {
        let first = short.first_cluster(self.layout.is_fat32());
        if first == 0 {
            return Ok(());
        }
        let (len, pieces) = self.claim(first)?;
        let dir = short.is_dir();
        self.items.push(Item {
            entry,
            first,
            len,
            pieces,
            dir,
            pinned: false,
        });
        Ok(())
    }

    /// Follows a chain and takes its clusters: how many, in how many pieces.
    fn claim(&mut self, first: u32) -> Result<(u32, u32)> {
        let (mut at, mut len, mut pieces) = (first, 0, 1);
        loop {
            let (count, link) = self.table.follow(at, self.layout.cluster_count)?;
            for cluster in at..at + count {
                self.own(cluster)?;
            }
            len += count;
            match link {
                Link::End => return Ok((len, pieces)),
                Link::Next(next) => {
                    pieces += u32::from(next != at + count);
                    at = next;
                }
                link => return Err(self.table.broken(at + count - 1, link)),
            }
        }
    }

    fn own(&mut self, cluster: u32) -> Result<()> {
        let bit = 1 << (cluster % 64);
        match self.owned.get_mut(cluster as usize / 64) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Ok(())
            }
            _ => Err(Error::corrupt(
                "FAT entry",
                self.layout.fat_offset(self.layout.active_fat),
                format!("cluster {cluster} in two chains"),
                "one owner; run fsck first",
            )),
        }
    }
}

//! Reading a volume's tables and directories without attaching it: slowly,
//! in bounded memory, and as far as damage lets one. For `info`, `dump` and
//! `map`.

use crate::directory::slots::{Event, Scanner};
use crate::names::record::{LongStyle, Record};
use crate::names::short::show_plain;
use crate::names::style::{Names, Style};
use crate::table::copies;
use crate::volume::layout::{FatKind, Layout};
use crate::volume::ondisk::{DIR_ENTRIES_MAX, DOT, DOT_DOT, DirEntry, ENTRY_LEN};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::ControlFlow;
use volary_core::{BlockDevice, Error, Kind, Result};

/// Bytes of the FAT that are kept at a time.
const WINDOW: u64 = 64 << 10;

/// Bytes of the FAT that are read at once where all of it is.
const SCAN: u64 = 1 << 20;
/// What a stretch of free clusters looks like in the FAT.
static ZEROS: [u8; 4096] = [0; 4096];

/// Where a directory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Where {
    /// The root directory, wherever the format has it.
    Root,
    /// At this cluster.
    Cluster(u32),
}

/// Clusters that follow each other on the disk and in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: u32,
    /// How many.
    pub len: u32,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The directory that holds its entry.
    pub dir: Where,
    /// The entry's slots, first and last.
    pub slots: (u32, u32),
    /// The entry.
    pub entry: DirEntry,
}

/// Reads one volume. Not for use by several threads.
pub struct Walker<'a> {
    dev: &'a dyn BlockDevice,
    layout: &'a Layout,
    /// The part of the FAT that was read last: its offset and its bytes.
    window: RefCell<(u64, Vec<u8>)>,
}

impl<'a> Walker<'a> {
    /// Nothing is read yet.
    pub fn new(dev: &'a dyn BlockDevice, layout: &'a Layout) -> Self {
        Self {
            dev,
            layout,
            window: RefCell::new((0, Vec::new())),
        }
    }

    /// Returns the FAT's entry of cluster `n`, without FAT32's upper four bits.
    ///
    /// # Errors
    /// `Io` if no copy of the FAT can be read there; `Invalid` past its end.
    pub fn fat_entry(&self, n: u32) -> Result<u32> {
        Ok(self.raw_entry(n)? & self.layout.kind.mask())
    }

    /// Returns the FAT's entry of cluster `n`, with FAT32's upper four bits.
    ///
    /// # Errors
    /// As [`fat_entry`](Self::fat_entry).
    pub fn raw_entry(&self, n: u32) -> Result<u32> {
        let n = u64::from(n);
        let bytes = match self.layout.kind {
            FatKind::Fat12 => self.fat_bytes(n + n / 2, 2)?,
            FatKind::Fat16 => self.fat_bytes(n * 2, 2)?,
            FatKind::Fat32 => self.fat_bytes(n * 4, 4)?,
        };
        let value = u32::from_le_bytes(bytes);
        Ok(match self.layout.kind {
            FatKind::Fat12 if n % 2 == 1 => value >> 4,
            FatKind::Fat12 => value & 0xfff,
            FatKind::Fat16 | FatKind::Fat32 => value,
        })
    }

    /// Returns bytes of the FAT, filled up with zeros.
    fn fat_bytes(&self, at: u64, len: u64) -> Result<[u8; 4]> {
        if at + len > self.layout.fat_len() {
            return Err(Error::note(Kind::Invalid, "past the end of the FAT"));
        }
        let mut window = self.window.borrow_mut();
        let (start, bytes) = &mut *window;
        if at < *start || at + len > *start + bytes.len() as u64 {
            // An entry of FAT12 can lie across the border of two windows.
            *start = at / WINDOW * WINDOW;
            let end = (*start + WINDOW + 1).min(self.layout.fat_len());
            let read = self.read_fat(*start, end - *start);
            *bytes = read.inspect_err(|_| *start = 0).unwrap_or_default();
            if bytes.is_empty() {
                return Err(self.read_fat(at, len).err().unwrap_or(Kind::Io.into()));
            }
        }
        let from = usize::try_from(at - *start).unwrap_or(usize::MAX);
        let mut out = [0; 4];
        for (to, from) in out
            .iter_mut()
            .zip(bytes.iter().skip(from).take(len as usize))
        {
            *to = *from;
        }
        Ok(out)
    }

    /// Returns bytes of the active FAT, and from the other copies where it cannot be read.
    fn read_fat(&self, at: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let layout = self.layout;
        let first = layout.fat_offset(layout.active_fat);
        copies::read(self.dev, first, &layout.copies(), at, &mut bytes)?;
        Ok(bytes)
    }

    /// Tells `each` the values of all clusters in order, as first cluster, how
    /// many follow it with the same value, and the value.
    ///
    /// # Errors
    /// As [`fat_entry`](Self::fat_entry).
    pub(crate) fn values(&self, mut each: impl FnMut(u32, u32, u32)) -> Result<()> {
        let layout = self.layout;
        let width = u64::from(layout.kind.bits() / 8);
        if layout.kind == FatKind::Fat12 {
            for n in 2..=layout.last_cluster() {
                each(n, 1, self.fat_entry(n)?);
            }
            return Ok(());
        }
        let mut n = 2;
        while n <= layout.last_cluster() {
            let left = u64::from(layout.last_cluster() - n + 1) * width;
            let bytes = self.read_fat(u64::from(n) * width, left.min(SCAN))?;
            for part in bytes.chunks(ZEROS.len()) {
                // Most of a large volume is free: told by comparing stretches.
                let count = (part.len() as u64 / width) as u32;
                if ZEROS.get(..part.len()) == Some(part) {
                    each(n, count, 0);
                } else {
                    self.part_values(n, part, &mut each);
                }
                n += count;
            }
        }
        Ok(())
    }

    fn part_values(&self, first: u32, part: &[u8], each: &mut impl FnMut(u32, u32, u32)) {
        let mask = self.layout.kind.mask();
        if self.layout.is_fat32() {
            for (n, raw) in (first..).zip(part.as_chunks::<4>().0) {
                each(n, 1, u32::from_le_bytes(*raw) & mask);
            }
        } else {
            for (n, raw) in (first..).zip(part.as_chunks::<2>().0) {
                each(n, 1, u16::from_le_bytes(*raw).into());
            }
        }
    }

    /// Tells `each` the runs of the chain that begins at `first`, until it
    /// answers false.
    ///
    /// # Errors
    /// `Corrupt` where the chain leads to what is no cluster in use, or around
    /// in a circle; `Io`. What comes before that has been told.
    pub fn runs(&self, first: u32, each: &mut dyn FnMut(Run) -> bool) -> Result<()> {
        let layout = self.layout;
        if !layout.is_cluster(first) {
            return Err(bad_link(layout, first, first));
        }
        let mut run = Run { first, len: 1 };
        let mut at = first;
        // Brent's search for a circle: a mark that is moved up to the walker
        // after 2, 4, 8, … steps.
        let (mut mark, mut steps, mut limit) = (first, 0_u64, 2_u64);
        loop {
            let next = match self.fat_entry(at) {
                Ok(n) if n >= layout.kind.end_min() => {
                    each(run);
                    return Ok(());
                }
                Ok(n) if layout.is_cluster(n) => Ok(n),
                Ok(n) => Err(bad_link(layout, at, n)),
                Err(e) => Err(e),
            };
            let next = match next {
                Ok(n) if n == mark => Err(circle(layout, at, n)),
                other => other,
            };
            let next = match next {
                Ok(n) => n,
                Err(e) => {
                    each(run);
                    return Err(e);
                }
            };
            steps += 1;
            if steps == limit {
                (mark, steps, limit) = (next, 0, limit * 2);
            }
            if next == at + 1 {
                run.len += 1;
            } else {
                if !each(run) {
                    return Ok(());
                }
                run = Run {
                    first: next,
                    len: 1,
                };
            }
            at = next;
        }
    }

    /// Tells `each` the byte ranges of a directory, until it answers false:
    /// at most as many as its 65,536 entries take.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub fn dir_parts(&self, dir: Where, each: &mut dyn FnMut(u64, u64) -> bool) -> Result<()> {
        let layout = self.layout;
        let first = match dir {
            Where::Root if !layout.is_fat32() => {
                each(
                    layout.root_offset(),
                    u64::from(layout.root_entries) * ENTRY_LEN as u64,
                );
                return Ok(());
            }
            Where::Root => layout.root_cluster,
            Where::Cluster(n) => n,
        };
        let mut left = u64::from(DIR_ENTRIES_MAX) * ENTRY_LEN as u64;
        self.runs(first, &mut |run| {
            let len = (u64::from(run.len) * u64::from(layout.cluster_len)).min(left);
            left -= len;
            each(layout.cluster_offset(run.first), len) && left > 0
        })
    }

    /// Tells `each` the raw bytes of a directory in pieces of whole entries,
    /// with their place on the device, until it answers false.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub fn dir_bytes(&self, dir: Where, each: &mut dyn FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let mut failed = Ok(());
        let mut buf = vec![0; self.layout.cluster_len as usize];
        self.dir_parts(dir, &mut |start, len| {
            let mut at = start;
            while at < start + len {
                let n = usize::try_from(start + len - at)
                    .unwrap_or(buf.len())
                    .min(buf.len());
                let Some(part) = buf.get_mut(..n) else {
                    return false;
                };
                if let Err(e) = self.dev.read_at(at, part) {
                    failed = Err(e);
                    return false;
                }
                if !each(at, part) {
                    return false;
                }
                at += n as u64;
            }
            true
        })?;
        failed
    }

    /// Tells `each` what a directory holds, until it answers false.
    ///
    /// # Errors
    /// As [`runs`](Self::runs). What comes before the damage has been told.
    pub fn events(&self, dir: Where, each: &mut dyn FnMut(Event<'_>) -> bool) -> Result<()> {
        let mut scanner = Scanner::new(LongStyle::Vfat);
        let mut go_on = |event: Event<'_>| {
            if each(event) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let mut stopped = false;
        let read = self.dir_bytes(dir, &mut |_, bytes| {
            stopped = scanner.feed(bytes, &mut go_on).is_break();
            !stopped && !scanner.ended()
        });
        if !stopped {
            let _ = scanner.finish(&mut go_on);
        }
        read
    }

    /// Tells `each` the records of a directory but `.` and `..`, until it
    /// answers false.
    ///
    /// # Errors
    /// As [`runs`](Self::runs).
    pub fn records(&self, dir: Where, each: &mut dyn FnMut(&Record<'_>) -> bool) -> Result<()> {
        self.events(dir, &mut |event| match event {
            Event::Record(r) if r.short.DIR_Name != DOT && r.short.DIR_Name != DOT_DOT => each(&r),
            _ => true,
        })
    }

    /// As many records as all of the volume has room for. Directories that share clusters have more.
    fn records_max(&self) -> u64 {
        let bytes = u64::from(self.layout.total_sectors) * u64::from(self.layout.sector_len);
        bytes / ENTRY_LEN as u64
    }

    /// Tells `each` every record of every directory, each directory once, until
    /// it answers false. Damage is passed over: `damage` counts the chains
    /// that could not be followed to their end.
    pub fn tree(&self, each: &mut dyn FnMut(Where, &Record<'_>) -> bool) -> u64 {
        let fat32 = self.layout.is_fat32();
        let mut todo = vec![Where::Root];
        let mut seen: HashSet<u32> = HashSet::from([self.layout.root_cluster]);
        let mut damage = 0;
        let mut stop = false;
        let mut left = self.records_max();
        while let Some(dir) = todo.pop() {
            let read = self.records(dir, &mut |r| {
                left = left.saturating_sub(1);
                if left == 0 || !each(dir, r) {
                    stop = true;
                    return false;
                }
                let first = r.short.first_cluster(fat32);
                if r.short.is_dir() && self.layout.is_cluster(first) && seen.insert(first) {
                    todo.push(Where::Cluster(first));
                }
                true
            });
            damage += u64::from(read.is_err());
            if stop {
                break;
            }
        }
        damage
    }

    /// Returns the first `max` bytes of a file.
    ///
    /// # Errors
    /// As [`runs`](Self::runs); `Corrupt` if the chain ends before.
    pub fn content(&self, entry: &DirEntry, max: usize) -> Result<Vec<u8>> {
        let len = (entry.DIR_FileSize.get() as usize).min(max);
        let mut out = vec![0; len];
        let mut at = 0_usize;
        let mut failed = Ok(());
        let cluster = self.layout.cluster_len as usize;
        let first = entry.first_cluster(self.layout.is_fat32());
        if len == 0 {
            return Ok(out);
        }
        self.runs(first, &mut |run| {
            let end = at.saturating_add(run.len as usize * cluster).min(len);
            if let Some(part) = out.get_mut(at..end) {
                failed = self
                    .dev
                    .read_at(self.layout.cluster_offset(run.first), part);
            }
            at = end;
            failed.is_ok() && at < len
        })?;
        failed?;
        if at < len {
            let expected = format!("clusters for {len} bytes");
            return Err(Error::corrupt("chain", 0, format!("{at} bytes"), expected));
        }
        Ok(out)
    }

    /// Returns what a path leads to; `None` for the root directory. Names are long or
    /// short ones, in any case; more `/` than needed do no harm.
    ///
    /// # Errors
    /// `NotFound`; `NotDir`; as [`runs`](Self::runs).
    pub fn find(&self, path: &str) -> Result<Option<Found>> {
        let names = Names::new(
            Style::Long,
            crate::names::codepage::CodePage::DEFAULT,
            false,
        )?;
        let mut found: Option<Found> = None;
        for part in path.split('/').filter(|p| !p.is_empty()) {
            let dir = self.dir_of(found.as_ref())?;
            found = Some(self.find_in(dir, part, &names)?);
        }
        Ok(found)
    }

    /// Returns where the directory begins that a path has led to.
    ///
    /// # Errors
    /// `NotDir`.
    pub fn dir_of(&self, found: Option<&Found>) -> Result<Where> {
        match found {
            None => Ok(Where::Root),
            Some(f) if f.entry.is_dir() => Ok(Where::Cluster(
                f.entry.first_cluster(self.layout.is_fat32()),
            )),
            Some(_) => Err(Kind::NotDir.into()),
        }
    }

    fn find_in(&self, dir: Where, name: &str, names: &Names) -> Result<Found> {
        let (mut want, mut have, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        names.fold(name.as_bytes(), &mut want);
        let mut found = None;
        let mut same = |r: &Record<'_>| {
            names.show(r, &mut shown);
            names.fold(&shown, &mut have);
            if have == want {
                return true;
            }
            show_plain(&r.short.DIR_Name, &names.page, &mut shown);
            names.fold(&shown, &mut have);
            have == want
        };
        let read = self.records(dir, &mut |r| {
            if !r.short.is_label() && same(r) {
                found = Some(Found {
                    dir,
                    slots: (r.first_slot, r.last_slot),
                    entry: r.short,
                });
            }
            found.is_none()
        });
        match found {
            Some(found) => Ok(found),
            None => {
                read?;
                let words = format!("no entry '{}' there", volary_core::escape(name.as_bytes()));
                Err(Error::note(Kind::NotFound, words))
            }
        }
    }
}

fn bad_link(layout: &Layout, at: u32, value: u32) -> Error {
    let expected = format!("a cluster from 2 to {} or the end", layout.last_cluster());
    Error::corrupt(
        "FAT entry",
        entry_offset(layout, at),
        format!("{value:#x} (of cluster {at})"),
        expected,
    )
}

fn circle(layout: &Layout, at: u32, next: u32) -> Error {
    let found = format!("{next} (of cluster {at}), which the chain has passed");
    Error::corrupt(
        "FAT entry",
        entry_offset(layout, at),
        found,
        "a chain that ends",
    )
}

/// Returns where on the device the active FAT's entry of a cluster begins.
pub(crate) fn entry_offset(layout: &Layout, n: u32) -> u64 {
    layout.fat_offset(layout.active_fat) + u64::from(n) * u64::from(layout.kind.bits()) / 8
}

#[cfg(test)]
mod tests;

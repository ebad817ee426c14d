//! Free clusters: finding, taking and giving back.
//!
//! The paper's rules (DosFs, section 5): a file that grows takes the first
//! free cluster after its last one, or else the nearest before it; a new one
//! starts at an estimate of the lowest free cluster. What is kept for files that
//! grow ([`reserve`](crate::table::reserve)) is passed over as long as there is room elsewhere.

use crate::table::fat::{Inner, Link, Table, UNKNOWN, entry};
use crate::table::reserve::Grower;
use crate::table::runs::{Run, Runs};
use crate::volume::layout::FatKind;
use std::ops::RangeInclusive;
use volary_core::{Kind, Result};

/// What was given back but must stay taken until no directory on the disk
/// points to it any more.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Clusters to free.
    pub(crate) runs: Vec<Run>,
    /// Clusters at which a chain will end.
    pub(crate) cuts: Vec<u32>,
    /// How many clusters `runs` holds.
    pub(crate) clusters: u32,
}

impl Pending {
    /// Adds the runs that a file gave back.
    pub(crate) fn add(&mut self, runs: &[Run], cut: Option<u32>) {
        self.clusters += runs.iter().map(|r| r.len).sum::<u32>();
        self.runs.extend_from_slice(runs);
        self.cuts.extend(cut);
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.cuts.is_empty()
    }
}

/// Which way to look for free clusters.
#[derive(Clone, Copy)]
enum Scan {
    /// Upwards, from here to there.
    Up(u32, u32),
    /// Downwards from here.
    Down(u32),
}

impl Table {
    /// Takes `count` free clusters and chains them, the last with an end: near
    /// after `near`, or for a new file the lowest. They count as taken at once.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; nothing is taken then.
    pub(crate) fn allocate(&self, count: u32, near: Option<u32>) -> Result<Runs> {
        self.allocate_for(None, count, near)
    }

    /// Takes and chains clusters for a file that grows, and keeps room for it behind them.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub(crate) fn allocate_for(
        &self,
        grower: Option<Grower>,
        count: u32,
        near: Option<u32>,
    ) -> Result<Runs> {
        let mut got = Runs::default();
        let mut result = self.fill(&mut got, count, near, grower.as_ref());
        if result.is_ok() && got.clusters() < count && self.give_all_up() {
            result = self.fill(&mut got, count, near, grower.as_ref());
        }
        let result = match result {
            Ok(()) if got.clusters() < count => Err(Kind::NoSpace.into()),
            other => other,
        };
        if let Err(e) = result {
            // What was taken was in loaded segments, which are dirty now and
            // so still loaded: giving it back needs no device.
            for run in got.as_slice() {
                self.free_run(*run)?;
            }
            return Err(e);
        }
        match (near, got.last(), grower) {
            (None, Some(last), _) => self.inner().low = last.saturating_add(1),
            (Some(_), Some(last), Some(grower)) => self.keep_ahead(&grower, last),
            _ => {}
        }
        Ok(got)
    }

    /// Takes clusters until there are `count`, or no more outside of others'
    /// reservations.
    fn fill(
        &self,
        got: &mut Runs,
        count: u32,
        near: Option<u32>,
        grower: Option<&Grower>,
    ) -> Result<()> {
        let owner = grower.map(|grower| grower.owner);
        let Some(near) = near else {
            let low = self.inner().low.clamp(2, self.last);
            self.take(got, count, Scan::Up(low, self.last), owner)?;
            return self.take(got, count, Scan::Up(2, low), owner);
        };
        if let Some(grower) = grower {
            self.take_long(got, count, near, grower)?;
        }
        let near = got.last().unwrap_or(near);
        self.take(
            got,
            count,
            Scan::Up(near.saturating_add(1), self.last),
            owner,
        )?;
        self.take(got, count, Scan::Down(near), owner)
    }

    /// Takes those of the `len` clusters from `first` on that are free.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn take_up(
        &self,
        got: &mut Runs,
        first: u32,
        len: u32,
        owner: Option<u64>,
    ) -> Result<()> {
        let count = got.clusters() + len;
        self.take(got, count, Scan::Up(first, first + len - 1), owner)
    }

    fn take(&self, got: &mut Runs, count: u32, scan: Scan, owner: Option<u64>) -> Result<()> {
        let mut scan = scan;
        while got.clusters() < count {
            let from = match scan {
                Scan::Up(from, to) if from <= to => from,
                Scan::Down(from) if from >= 2 => from,
                _ => return Ok(()),
            };
            let (segment, index) = self.place(from);
            if let Some(next) = self.skip_full(segment, scan) {
                scan = next;
                continue;
            }
            let mut inner = self.lock(segment)?;
            if inner.free.get(segment) == Some(&UNKNOWN) {
                inner.count(self, segment);
                continue;
            }
            let want = count - got.clusters();
            let base = from - index;
            let found = match scan {
                Scan::Up(_, to) => inner.free_above(self, segment, index..=to - base, want, owner),
                Scan::Down(_) => inner.free_below(self, segment, 0..=index, want, owner),
            };
            let Some((start, len)) = found else {
                drop(inner);
                match self.next_segment(segment, scan) {
                    Some(next) => scan = next,
                    None => return Ok(()),
                }
                continue;
            };
            let run = (base + start, len);
            inner.chain(self, segment, start, len, run.0);
            drop(inner);
            if let Some(last) = got.last() {
                self.set_next(last, Some(run.0))?;
            }
            got.push(run.0, len);
            scan = match scan {
                Scan::Up(_, to) => Scan::Up(run.0 + len, to),
                Scan::Down(_) => Scan::Down(run.0.saturating_sub(1)),
            };
        }
        Ok(())
    }

    /// Returns where to go on if `segment` is known to be full.
    fn skip_full(&self, segment: usize, scan: Scan) -> Option<Scan> {
        let full = self.inner().free.get(segment) == Some(&0);
        full.then(|| self.next_segment(segment, scan).unwrap_or(Scan::Down(0)))
    }

    fn next_segment(&self, segment: usize, scan: Scan) -> Option<Scan> {
        let start =
            |s: usize| u32::try_from(s as u64 * u64::from(self.entries().per_segment())).ok();
        match scan {
            Scan::Up(_, to) => Some(Scan::Up(start(segment + 1)?, to)),
            Scan::Down(_) => Some(Scan::Down(start(segment)?.checked_sub(1)?)),
        }
    }

    /// Takes `len` clusters from `first` on, which must be free, and chains
    /// them, the last with an end.
    ///
    /// # Errors
    /// `Corrupt` for clusters that do not exist; `Io`.
    pub(crate) fn take_run(&self, first: u32, len: u32) -> Result<()> {
        let mut at = first;
        let end = first.saturating_add(len);
        while at < end {
            let (segment, index) = self.place(at);
            let mut inner = self.lock(segment)?;
            let part = (end - at).min(self.entries().per_segment() - index);
            inner.chain(self, segment, index, part, at);
            drop(inner);
            if at > first {
                self.set_next(at - 1, Some(at))?;
            }
            at += part;
        }
        Ok(())
    }

    /// Marks a free cluster bad.
    ///
    /// # Errors
    /// `Corrupt` for a cluster that does not exist; `Io`.
    pub(crate) fn set_bad(&self, cluster: u32) -> Result<()> {
        self.take_run(cluster, 1)?;
        let (segment, index) = self.place(cluster);
        self.lock(segment)?
            .set(self, segment, index, self.kind.bad());
        Ok(())
    }

    /// Frees what is pending. It must be certain that no directory entry on
    /// the disk leads there.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn release(&self, pending: &Pending, dirty_max: u64) -> Result<()> {
        // A file may have been cut and then removed: its last cluster is in both.
        for &cluster in &pending.cuts {
            self.set_next(cluster, None)?;
        }
        // Cuts must be durable before the next lot of what was behind them.
        let mut cuts = !pending.cuts.is_empty();
        for run in &pending.runs {
            self.free_run(*run)?;
            if self.dirty_len() > dirty_max {
                self.write()?;
                if std::mem::take(&mut cuts) {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Frees clusters to which nothing on the disk leads.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn free_run(&self, run: Run) -> Result<()> {
        let mut first = run.first;
        let end = run.first + run.len;
        while first < end {
            let (segment, index) = self.place(first);
            let mut inner = self.lock(segment)?;
            let len = (end - first).min(self.entries().per_segment() - index);
            for i in index..index + len {
                inner.set(self, segment, i, 0);
            }
            inner.freed(segment, len);
            inner.low = inner.low.min(first);
            first += len;
        }
        Ok(())
    }

    /// Returns how many clusters are free, reading what is left of the FAT if that is
    /// not known.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn free_count(&self) -> Result<u32> {
        let segments = {
            let inner = self.inner();
            if let Some(free) = inner.free_total {
                return Ok(free);
            }
            inner.free.len()
        };
        for segment in 0..segments {
            if self.inner().free.get(segment) == Some(&UNKNOWN) {
                self.lock(segment)?.count(self, segment);
            }
        }
        let mut inner = self.inner();
        let total = inner.free.iter().filter(|&&f| f != UNKNOWN).sum();
        inner.free_total = Some(total);
        Ok(total)
    }

    /// Takes the word of the FSInfo sector for the number of free clusters and
    /// for where to look first.
    pub(crate) fn believe(&self, free: Option<u32>, next: Option<u32>) {
        let mut inner = self.inner();
        inner.free_total = free.filter(|&f| f < self.last);
        inner.low = next.filter(|n| (2..=self.last).contains(n)).unwrap_or(2);
    }

    /// Returns the number of free clusters, if it is known, and where to look first, a
    /// cluster also of a volume that is full: what an FSInfo sector says.
    pub(crate) fn hints(&self) -> (Option<u32>, u32) {
        let inner = self.inner();
        let kept = inner
            .kept
            .lowest()
            .and_then(|kept| u32::try_from(kept).ok());
        let low = kept.map_or(inner.low, |kept| kept.min(inner.low));
        let next = if low <= self.last { low } else { 2 };
        (inner.free_total, next)
    }

    /// Returns the cluster that index 0 of a segment stands for.
    pub(crate) fn base(&self, segment: usize) -> u64 {
        segment as u64 * u64::from(self.entries().per_segment())
    }
}

impl Inner {
    /// Returns the first free run within these indices, in no reservation of another: its start and
    /// length, at most `want`.
    pub(crate) fn free_above(
        &self,
        table: &Table,
        segment: usize,
        indices: RangeInclusive<u32>,
        want: u32,
        owner: Option<u64>,
    ) -> Option<(u32, u32)> {
        let (_, end) = table.entries().indices(segment);
        let end = end.min(indices.end().saturating_add(1));
        let base = table.base(segment);
        let is_free = |i: &u32| self.link(table, segment, *i) == Link::Free;
        let mut index = *indices.start();
        loop {
            let start = (index..end).find(is_free)?;
            let at = base + u64::from(start);
            if let Some(others) = self.kept.others_at(at, owner) {
                index = u32::try_from(others.end - base).unwrap_or(end);
                continue;
            }
            let most = u64::from(want).min(self.kept.others_above(at, owner) - at);
            let len = (start..end).take(most as usize).take_while(is_free).count();
            return Some((start, len as u32));
        }
    }

    /// Returns the last free run within these indices, in no reservation of another: its start and
    /// length, at most `want`.
    pub(crate) fn free_below(
        &self,
        table: &Table,
        segment: usize,
        indices: RangeInclusive<u32>,
        want: u32,
        owner: Option<u64>,
    ) -> Option<(u32, u32)> {
        let (start, _) = table.entries().indices(segment);
        let start = start.max(*indices.start());
        let base = table.base(segment);
        let is_free = |i: &u32| self.link(table, segment, *i) == Link::Free;
        let mut index = *indices.end();
        loop {
            let last = (start..=index).rev().find(is_free)?;
            let at = base + u64::from(last);
            if let Some(others) = self.kept.others_at(at, owner) {
                let before = others.start.checked_sub(base + 1)?;
                index = u32::try_from(before).ok()?;
                continue;
            }
            let most = u64::from(want).min(at + 1 - self.kept.others_below(at, owner));
            let below = (start..=last).rev();
            let len = below.take(most as usize).take_while(is_free).count() as u32;
            return Some((last + 1 - len, len));
        }
    }

    /// Counts the free clusters of a loaded segment.
    pub(crate) fn count(&mut self, table: &Table, segment: usize) {
        let (start, end) = table.entries().indices(segment);
        let bytes = self.bytes(segment);
        let free = match table.kind {
            FatKind::Fat12 => (start..end)
                .filter(|&i| entry(FatKind::Fat12, bytes, i) == 0)
                .count(),
            FatKind::Fat16 => zeros::<2>(bytes, start, end, |e| u16::from_le_bytes(e) == 0),
            FatKind::Fat32 => zeros::<4>(bytes, start, end, |e| {
                u32::from_le_bytes(e) & 0x0fff_ffff == 0
            }),
        };
        if let Some(place) = self.free.get_mut(segment) {
            *place = free as u32;
        }
    }

    /// Chains `len` entries from `start` on, which stand for clusters from
    /// `first` on, the last with an end; and counts them as taken.
    fn chain(&mut self, table: &Table, segment: usize, start: u32, len: u32, first: u32) {
        for i in 0..len {
            let value = if i + 1 == len {
                table.kind.mask()
            } else {
                first + i + 1
            };
            self.set(table, segment, start + i, value);
        }
        if let Some(free) = self.free.get_mut(segment).filter(|f| **f != UNKNOWN) {
            *free = free.saturating_sub(len);
        }
        self.free_total = self.free_total.map(|f| f.saturating_sub(len));
    }

    fn freed(&mut self, segment: usize, len: u32) {
        if let Some(free) = self.free.get_mut(segment).filter(|f| **f != UNKNOWN) {
            *free += len;
        }
        self.free_total = self.free_total.map(|f| f.saturating_add(len));
    }
}

fn zeros<const N: usize>(
    bytes: &[u8],
    start: u32,
    end: u32,
    is_free: impl Fn([u8; N]) -> bool,
) -> usize {
    let (entries, _) = bytes.as_chunks::<N>();
    let entries = entries.get(start as usize..end as usize).unwrap_or(&[]);
    entries.iter().filter(|e| is_free(**e)).count()
}

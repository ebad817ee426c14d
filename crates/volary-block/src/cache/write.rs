//! Writing into the cache, and dropping data from it.

use super::page::{self, Page, Sectors};
use super::shard::{GROUP, Shard};
use super::{Cache, PAGE, SECTOR, Stage, pages_of};
use crate::range::check_range;
use volary_core::{Error, Kind, Result};

/// Bytes of a group of pages.
const GROUP_BYTES: u64 = GROUP * PAGE as u64;

/// The most groups that are looked up one by one. For more, the whole table is searched.
const FEW_GROUPS: u64 = 1024;

impl Cache {
    /// Writes `data` at byte `offset`, to reach the device in `stage`.
    ///
    /// # Errors
    /// `ReadOnly`; `Io` after a failed flush; `Invalid` past the end; `Io` if memory is short and
    /// older data cannot be written, or if a sector that is partly written cannot be read. The
    /// first pages of `data` may then be in the cache.
    pub fn write(&self, offset: u64, data: &[u8], stage: Stage) -> Result<()> {
        self.check_write(offset, data.len())?;
        let mut rest = data;
        for (page, at, n) in pages_of(offset, data.len() as u64) {
            let (now, later) = rest.split_at(n);
            self.write_page(page, at, now, stage.index())?;
            rest = later;
        }
        self.relieve();
        Ok(())
    }

    /// Calls `f` with the `len` bytes at `offset`, which lie in one page, to change them in place.
    /// The sectors that the range touches are then dirty in `stage`. `f` must not use the cache,
    /// because it runs under a lock.
    ///
    /// # Errors
    /// As [`write`](Self::write); `Invalid` if the range crosses the border of a page.
    pub fn update<R>(
        &self,
        offset: u64,
        len: usize,
        stage: Stage,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        self.check_write(offset, len)?;
        let (page, at) = self.place(offset, len)?;
        if len == 0 {
            return Ok(f(&mut []));
        }
        let sectors = page::touched(at, len);
        loop {
            let mut shard = self.shard(page);
            if shard.get(page).is_some_and(|p| p.has(sectors)) {
                let result = shard.use_page(&self.totals, page, |p| {
                    p.mark(sectors, stage.index());
                    f(&mut p.bytes_mut()[at..at + len])
                });
                return result.ok_or_else(|| Kind::Invalid.into());
            }
            drop(shard);
            self.miss(offset, len)?;
        }
    }

    /// Drops what the cache has of the range, even if it is dirty. The content no longer matters
    /// until it is written again. Sectors that are only partly in the range are kept, and so is
    /// what lies past the end.
    pub fn drop_range(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        let groups = offset / GROUP_BYTES..end.div_ceil(GROUP_BYTES);
        if groups.end.saturating_sub(groups.start) <= FEW_GROUPS {
            for group in groups {
                self.drop_in(&mut self.shard(group * GROUP), group, offset, end);
            }
        } else {
            for part in &self.shards {
                let mut shard = part.shard.lock();
                let numbers = shard.numbers().to_vec();
                for group in numbers.into_iter().filter(|n| groups.contains(n)) {
                    self.drop_in(&mut shard, group, offset, end);
                }
            }
        }
        self.trim_clean();
    }

    /// Drops the part of a range that lies in one group.
    fn drop_in(&self, shard: &mut Shard, group: u64, offset: u64, end: u64) {
        let mut place = 0;
        while let Some(found) = shard.group(group).and_then(|g| g.next_present(place)) {
            let page = group * GROUP + found;
            let start = page * PAGE as u64;
            let from = offset.clamp(start, start + PAGE as u64);
            let to = end.clamp(from, start + PAGE as u64);
            let sectors = self.covered(page, (from - start) as usize, (to - from) as usize);
            shard.change(&self.totals, page, |p| p.forget(sectors));
            place = found + 1;
            if place == GROUP {
                return;
            }
        }
    }

    /// Makes the checks that precede every write.
    pub(super) fn check_write(&self, offset: u64, len: usize) -> Result<()> {
        if self.read_only {
            return Err(Kind::ReadOnly.into());
        }
        self.check_failed()?;
        check_range(offset, len, self.size).map(drop)
    }

    /// Returns the sectors of a page that lie wholly in the range. The device's last sector counts
    /// as whole if the range reaches to the device's end.
    pub(super) fn covered(&self, page: u64, at: usize, len: usize) -> Sectors {
        let end = at + len;
        let to_end = page * PAGE as u64 + end as u64 == self.size;
        let end = if to_end {
            end.next_multiple_of(SECTOR)
        } else {
            end
        };
        page::covered(at, end - at)
    }

    /// Writes into one page. Sectors that are only partly written are read first, if they are not
    /// cached.
    fn write_page(&self, page: u64, at: usize, data: &[u8], stage: usize) -> Result<()> {
        let sectors = page::touched(at, data.len());
        let partly = sectors & !self.covered(page, at, data.len());
        let write = |p: &mut Page| {
            let ready = p.has(partly);
            if ready {
                p.put(at, data);
                p.mark(sectors, stage);
            }
            ready
        };
        loop {
            let mut shard = self.shard(page);
            if shard.use_page(&self.totals, page, write) == Some(true) {
                return Ok(());
            }
            drop(shard);
            if partly != 0 {
                self.miss(page * PAGE as u64 + at as u64, data.len())?;
                continue;
            }
            self.reserve_for_write(1)?;
            let mut shard = self.shard(page);
            match shard.get(page) {
                Some(_) => self.give_back(1),
                None => shard.insert(page, Page::new(&self.blank)),
            }
            shard.change(&self.totals, page, write);
            return Ok(());
        }
    }
}

/// Returns the permanent error after a failed flush: see the [module](super).
pub(super) fn flush_failed(cause: &str) -> Error {
    Error::io(
        "flush",
        0,
        0,
        format!("{cause} (an earlier flush failed; attach the volume anew)"),
    )
}

//! Reading: hits, misses, and read-ahead.

use super::page::{self, Page, Sectors};
use super::shard::{GROUP, Shard};
use super::{BUFFERS, Cache, PAGE, SECTOR};
use crate::range::check_range;
use parking_lot::MutexGuard;
use std::sync::Arc;
use volary_core::{Error, Kind, Read, Result};

impl Cache {
    /// Fills `buf` with the newest bytes from `offset` on.
    ///
    /// # Errors
    /// `Invalid` past the end of the device; `Io`. The content of `buf` is then unspecified.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_past(offset, buf, self.io_size())
    }

    /// Reads as [`read`](Self::read) does, for data that is unlikely to be read again. Over a
    /// device with its own cache, whole pages that are not in this cache are read directly, and do
    /// not enter it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_past(offset, buf, self.direct_from())
    }

    /// Fills `buf`. Ranges of at least `least` bytes without any page are read directly from the
    /// device.
    fn read_past(&self, offset: u64, buf: &mut [u8], least: usize) -> Result<()> {
        check_range(offset, buf.len(), self.size)?;
        let mut done = 0;
        let mut straight = true;
        while done < buf.len() {
            let at = offset + done as u64;
            let rest = &mut buf[done..];
            let copied = self.copy_hits(at, rest);
            if copied > 0 {
                done += copied;
                continue;
            }
            let absent = if straight {
                self.absent(at, rest.len())
            } else {
                0
            };
            if absent >= least {
                match self.dev.read_at(at, &mut rest[..absent]) {
                    Ok(()) => done += absent,
                    Err(_) => straight = false,
                }
            } else {
                self.miss(at, rest.len())?;
            }
        }
        Ok(())
    }

    /// Calls `f` with the `len` bytes at `offset`, which lie in one page.
    ///
    /// # Errors
    /// `Invalid` past the end, or if the range crosses the border of a page; `Io`.
    pub fn view<R>(&self, offset: u64, len: usize, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let (page, at) = self.place(offset, len)?;
        if len == 0 {
            return Ok(f(&[]));
        }
        let sectors = page::touched(at, len);
        loop {
            let found = {
                let mut shard = self.shard(page);
                let group = shard.group_mut(page / GROUP).map(|g| {
                    g.touch(page % GROUP);
                    &*g
                });
                let found = group
                    .and_then(|g| g.get(page % GROUP))
                    .filter(|p| p.has(sectors));
                found.map(|p| Arc::clone(p.data()))
            };
            match found {
                Some(data) => return Ok(f(&data[at..at + len])),
                None => self.miss(offset, len)?,
            }
        }
    }

    /// Hints that the range will be read soon. Reads now what is not in the cache. What lies past
    /// the end is ignored, and so are errors.
    pub fn prefetch(&self, offset: u64, len: u64) {
        let end = offset
            .saturating_add(len)
            .min(self.size)
            .div_ceil(PAGE as u64);
        let mut page = offset / PAGE as u64;
        while page < end {
            let valid = self.shard(page).get(page).is_some_and(|p| p.has(page::ALL));
            let n = match valid {
                true => Ok(1),
                false => self.load(page, (end - page).min(self.io_pages)),
            };
            match n {
                Ok(n) => page += n.max(1),
                Err(_) => return,
            }
        }
    }

    /// Returns the page that a range lies in, and its offset there.
    pub(super) fn place(&self, offset: u64, len: usize) -> Result<(u64, usize)> {
        check_range(offset, len, self.size)?;
        let at = (offset % PAGE as u64) as usize;
        match at + len <= PAGE {
            true => Ok((offset / PAGE as u64, at)),
            false => Err(Error::note(
                Kind::Invalid,
                format!("{len} bytes at byte {offset} are not in one page"),
            )),
        }
    }

    /// Copies cached bytes from the start of the range on, within one group. Returns how many.
    fn copy_hits(&self, offset: u64, buf: &mut [u8]) -> usize {
        let first = offset / PAGE as u64;
        let mut shard = self.shard(first);
        let Some(group) = shard.group_mut(first / GROUP) else {
            return 0;
        };
        let mut done = 0;
        for (page, at, n) in super::pages_of(offset, buf.len() as u64) {
            let place = page - first / GROUP * GROUP;
            let found = (place < GROUP).then(|| group.get(place)).flatten();
            let Some(found) = found.filter(|p| p.has(page::touched(at, n))) else {
                break;
            };
            buf[done..done + n].copy_from_slice(&found.data()[at..at + n]);
            group.touch(place);
            done += n;
        }
        done
    }

    /// Returns how many of the bytes from `offset` on have no page, up to the longest request.
    fn absent(&self, offset: u64, len: usize) -> usize {
        let len = len.min(self.io_size());
        match self.next_present(offset, len) {
            None => len,
            Some(page) => (page * PAGE as u64).saturating_sub(offset) as usize,
        }
    }

    /// Returns the first page in the table that the range touches.
    pub(super) fn next_present(&self, offset: u64, len: usize) -> Option<u64> {
        let end = (offset + len as u64).div_ceil(PAGE as u64);
        let mut page = if len == 0 { end } else { offset / PAGE as u64 };
        while page < end {
            let group = page / GROUP;
            let shard = self.shard(page);
            let found = shard
                .group(group)
                .and_then(|g| g.next_present(page % GROUP));
            if let Some(place) = found {
                return Some(group * GROUP + place).filter(|p| *p < end);
            }
            page = (group + 1) * GROUP;
        }
        None
    }

    /// Loads the start of a range. Also loads more of it, or what follows, if this is likely to be
    /// needed.
    ///
    /// # Errors
    /// `Io` if a sector of the first page that the range touches cannot be read.
    pub(super) fn miss(&self, offset: u64, len: usize) -> Result<()> {
        let page = offset / PAGE as u64;
        let end = (offset + len as u64).div_ceil(PAGE as u64);
        let last = self.size.div_ceil(PAGE as u64);
        let wanted = (end - page).min(self.io_pages);
        let window = self.streams.lock().window(page, wanted, self.io_pages);
        if self.load(page, window.min(last - page)).is_ok() {
            return Ok(());
        }
        let at = (offset % PAGE as u64) as usize;
        self.load_sectors(page, page::touched(at, len.min(PAGE - at)))
    }

    /// Loads up to `count` pages from `first` on in one request, as far as they need it. If another
    /// thread is loading the first one, waits for that. Returns how many pages it loaded.
    fn load(&self, first: u64, count: u64) -> Result<u64> {
        let n = self.claim(first, count);
        if n == 0 {
            self.wait_loaded(first);
            return Ok(0);
        }
        let offset = first * PAGE as u64;
        let len = (self.size - offset).min(n * PAGE as u64) as usize;
        let mut buf = self.buffers.lock().pop().unwrap_or_default();
        buf.resize(buf.len().max(len), 0);
        let result = self.dev.read_at(offset, &mut buf[..len]);
        for (i, page) in (first..first + n).enumerate() {
            let bytes = &buf[i * PAGE..len.min((i + 1) * PAGE)];
            let sectors = if result.is_ok() { page::ALL } else { 0 };
            self.loaded(page, |p| p.fill(bytes, sectors));
        }
        let mut buffers = self.buffers.lock();
        if buffers.len() < BUFFERS {
            buffers.push(buf);
        }
        result.map(|()| n)
    }

    /// Loads one page sector by sector, as far as it can be read.
    ///
    /// # Errors
    /// `Io` for the first sector of `needed` that cannot be read.
    fn load_sectors(&self, page: u64, needed: Sectors) -> Result<()> {
        if self.claim(page, 1) == 0 {
            self.wait_loaded(page);
            return Ok(());
        }
        let offset = page * PAGE as u64;
        let len = (self.size - offset).min(PAGE as u64) as usize;
        let mut bytes = [0; PAGE];
        let (mut good, mut result) = (page::ALL, Ok(()));
        for at in (0..len).step_by(SECTOR) {
            let sector = page::touched(at, 1);
            let end = len.min(at + SECTOR);
            if let Err(e) = self.dev.read_at(offset + at as u64, &mut bytes[at..end]) {
                good &= !sector;
                if needed & sector != 0 && result.is_ok() {
                    result = Err(e);
                }
            }
        }
        let has = self.loaded(page, |p| {
            p.fill(&bytes[..len], good);
            p.has(needed)
        });
        if has == Some(true) { Ok(()) } else { result }
    }

    /// Loads several runs of pages (first, count) in one batch, as [`load`](Self::load) does. The
    /// device chooses the order. Skips pages that another thread is loading. Ignores errors.
    pub(super) fn load_all(&self, stretches: &[(u64, u64)]) {
        let count = stretches.iter().map(|(_, count)| *count as usize).sum();
        // Reserve room for all before the first claim: a thread that waits for room must hold no claimed page.
        self.reserve_for_read(count);
        let mut used = 0;
        let mut loads: Vec<(u64, Vec<u8>)> = Vec::new();
        for (mut first, count) in stretches.iter().copied() {
            let end = first + count;
            while first < end {
                let (n, new) = self.claim_reserved(first, (end - first).min(self.io_pages));
                used += new;
                let len = (self.size - first * PAGE as u64).min(n * PAGE as u64);
                if n > 0 {
                    loads.push((first, vec![0; len as usize]));
                }
                first += n.max(1);
            }
        }
        self.give_back(count - used);
        let mut reads: Vec<Read<'_>> = loads
            .iter_mut()
            .map(|(first, buf)| Read {
                offset: *first * PAGE as u64,
                buf,
                result: Ok(()),
            })
            .collect();
        self.dev.read_batch(&mut reads);
        for read in reads {
            let sectors = if read.result.is_ok() { page::ALL } else { 0 };
            let first = read.offset / PAGE as u64;
            for (page, bytes) in (first..).zip(read.buf.chunks(PAGE)) {
                self.loaded(page, |p| p.fill(bytes, sectors));
            }
        }
    }

    /// Marks pages from `first` on as being loaded by the caller. Stops after `count` pages, or at
    /// one that is whole or being loaded. Returns how many it marked. Makes room for them first.
    fn claim(&self, first: u64, count: u64) -> u64 {
        self.reserve_for_read(count as usize);
        let (n, new) = self.claim_reserved(first, count);
        self.give_back(count as usize - new);
        n
    }

    /// Does the same as [`claim`](Self::claim), in room that the caller has reserved. Also returns
    /// how many of the pages are new.
    fn claim_reserved(&self, first: u64, count: u64) -> (u64, usize) {
        let (mut page, mut new) = (first, 0);
        'all: while page < first + count {
            let mut shard = self.shard(page);
            let end = (first + count).min((page / GROUP + 1) * GROUP);
            while page < end {
                let claim = |p: &mut Page| {
                    let free = !p.loading && !p.has(page::ALL);
                    p.loading |= free;
                    free
                };
                match shard.change(&self.totals, page, claim) {
                    Some(true) => {}
                    Some(false) => break 'all,
                    None => {
                        shard.insert(page, Page::new(&self.blank));
                        shard.change(&self.totals, page, claim);
                        new += 1;
                    }
                }
                page += 1;
            }
        }
        (page - first, new)
    }

    /// Ends the caller's loading of a page, after `f` has changed it.
    fn loaded<R>(&self, page: u64, f: impl FnOnce(&mut Page) -> R) -> Option<R> {
        let part = self.part(page);
        let result = part.shard.lock().change(&self.totals, page, |p| {
            p.loading = false;
            f(p)
        });
        part.moved.notify_all();
        result
    }

    /// Waits until no thread is loading the page.
    fn wait_loaded(&self, page: u64) {
        drop(self.wait(page, |p| p.loading));
    }

    /// Waits while the page exists and `is_so`. Returns the locked shard.
    pub(super) fn wait(&self, page: u64, is_so: impl Fn(&Page) -> bool) -> MutexGuard<'_, Shard> {
        let part = self.part(page);
        let mut shard = part.shard.lock();
        while shard.get(page).is_some_and(&is_so) {
            part.moved.wait(&mut shard);
        }
        shard
    }
}

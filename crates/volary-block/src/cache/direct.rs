//! Writes that bypass the cache.

use super::page;
use super::{Cache, PAGE, SECTOR, Stage};
use std::sync::atomic::Ordering;
use volary_core::Result;

/// Bytes of a request to a host that caches it. The host then uses larger pieces of memory, which
/// are cheaper to write back.
const LONG: usize = 1 << 20;

impl Cache {
    /// Writes `data` at byte `offset` to the device at once, in requests of
    /// [`CacheOptions::io_size`](super::CacheOptions::io_size). Over a device with its own cache,
    /// requests are at least 1 MiB long.
    ///
    /// Copies in the cache are updated and become clean, whatever stage they were dirty in. The
    /// data is not durable before a flush or commit. Sectors at the ends that are only partly
    /// written go through the cache, in stage 0.
    ///
    /// # Errors
    /// `ReadOnly`; `Io` after a failed flush; `Invalid` past the end; `Io`: any of the sectors may
    /// have been written.
    pub fn write_direct(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check_write(offset, data.len())?;
        let head = (offset.next_multiple_of(SECTOR as u64) - offset) as usize;
        if head >= data.len() {
            return self.write(offset, data, Stage::DATA);
        }
        let (head, rest) = data.split_at(head);
        self.write(offset, head, Stage::DATA)?;
        let mut at = offset + head.len() as u64;
        let to_end = offset + data.len() as u64 == self.size;
        let tail = if to_end { 0 } else { rest.len() % SECTOR };
        let (middle, tail) = rest.split_at(rest.len() - tail);
        let len = match self.below_is_cached {
            true => self.io_size().max(LONG),
            false => self.io_size(),
        };
        for stretch in middle.chunks(len) {
            self.write_stretch(at, stretch)?;
            self.trim();
            at += stretch.len() as u64;
        }
        match tail.is_empty() {
            true => Ok(()),
            false => self.write(at, tail, Stage::DATA),
        }
    }

    /// Writes whole sectors. Meanwhile, no dirty page is being written: `gate` keeps new
    /// write-backs from starting, and earlier ones are waited for. So older data of these sectors
    /// cannot reach the device afterwards.
    fn write_stretch(&self, offset: u64, data: &[u8]) -> Result<()> {
        let _gate = loop {
            let gate = self.gate.read();
            match self.page_in_flight(offset, data.len()) {
                None => break gate,
                Some(page) => {
                    drop(gate);
                    drop(self.wait(page, |p| p.is_in_flight(page::ALL)));
                }
            }
        };
        let result = self.dev.write_at(offset, data);
        self.unflushed.store(true, Ordering::Release);
        self.present_in(offset, data.len(), |page| {
            let start = page * PAGE as u64;
            let from = offset.max(start);
            let to = (offset + data.len() as u64).min(start + PAGE as u64);
            let now = &data[(from - offset) as usize..(to - offset) as usize];
            let at = (from - start) as usize;
            let sectors = self.covered(page, at, now.len());
            let mut shard = self.wait(page, |p| p.loading);
            shard.change(&self.totals, page, |p| match result {
                Ok(()) => {
                    p.put(at, now);
                    p.settle(sectors);
                }
                Err(_) => p.forget_clean(sectors),
            });
            true
        });
        result
    }

    /// Calls `f` for the pages in the table that the range touches, in order, until `f` returns
    /// false.
    fn present_in(&self, offset: u64, len: usize, mut f: impl FnMut(u64) -> bool) {
        let end = offset + len as u64;
        let mut at = offset;
        while let Some(page) = self.next_present(at, (end - at) as usize) {
            at = ((page + 1) * PAGE as u64).min(end);
            if !f(page) {
                return;
            }
        }
    }

    /// Returns a page in the range that is being written to the device.
    fn page_in_flight(&self, offset: u64, len: usize) -> Option<u64> {
        let mut found = None;
        self.present_in(offset, len, |page| {
            let shard = self.shard(page);
            let flies = shard.get(page).is_some_and(|p| p.is_in_flight(page::ALL));
            found = flies.then_some(page);
            !flies
        });
        found
    }
}

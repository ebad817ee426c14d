//! The block cache: a bounded number of pages over a device, with delayed,
//! ordered writes.
//!
//! # Order
//!
//! A write goes in with a [`Stage`]. [`Cache::commit`] writes the dirty sectors
//! of stage 0, flushes, those of stage 1, flushes, and so on: what is in a
//! later stage is on the disk only when all earlier stages are. Within a
//! stage there is no order. Between commits, only sectors of stage 0 leave
//! the cache on their own, when memory is short; a driver that keeps many
//! dirty sectors of later stages watches [`Cache::held`] and commits.

use crate::range::check_range;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result};

/// When a write may reach the device, relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// Any time: data that nothing on the disk points to as yet, or that may
    /// be old or new after a crash.
    pub const DATA: Self = Self(0);
    /// The last stage.
    pub const LAST: Self = Self(3);
}

/// Bounds and sizes of a [`Cache`].
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Most bytes of pages that it holds, dirty ones of stages after 0 apart.
    pub memory: u64,
    /// Longest request to the device, in bytes: adjacent pages are read and
    /// written together up to this. A power of two, at least [`PAGE`].
    pub io_size: u32,
}

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Bytes in the unit of which dirtiness and stage are kept.
pub const SECTOR: usize = 512;

const SECTORS: usize = PAGE / SECTOR;
const CLEAN: u8 = u8::MAX;

struct Page {
    data: Box<[u8]>,
    /// Stage of each dirty sector, [`CLEAN`] of the others.
    stage: [u8; SECTORS],
}

/// The cache.
pub struct Cache {
    dev: Arc<dyn BlockDevice>,
    options: CacheOptions,
    size: u64,
    pages: Mutex<BTreeMap<u64, Page>>,
}

impl Cache {
    /// An empty cache over `dev`.
    pub fn new(dev: Arc<dyn BlockDevice>, options: CacheOptions) -> Self {
        let size = dev.geometry().size;
        Self {
            dev,
            options,
            size,
            pages: Mutex::default(),
        }
    }

    /// The device below.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.dev
    }

    /// Fills `buf` from byte `offset` on, as last written through the cache.
    ///
    /// # Errors
    /// `Invalid` past the end of the device; `Io`.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.size)?;
        let mut at = offset;
        for part in pages_of(offset, buf.len()) {
            let out = buf_at(buf, at - offset);
            self.view(at, part, |b| {
                out.get_mut(..part).unwrap_or_default().copy_from_slice(b)
            })?;
            at += part as u64;
        }
        Ok(())
    }

    /// Writes `data` at byte `offset`, to reach the device with `stage`. A
    /// sector that is dirty in another stage goes with the later of the two.
    ///
    /// # Errors
    /// `ReadOnly`; `Invalid` past the end; `Io`.
    pub fn write(&self, offset: u64, data: &[u8], stage: Stage) -> Result<()> {
        let mut at = offset;
        let mut rest = data;
        for part in pages_of(offset, data.len()) {
            let (now, later) = rest.split_at(part);
            self.update(at, part, stage, |b| b.copy_from_slice(now))?;
            at += part as u64;
            rest = later;
        }
        Ok(())
    }

    /// Writes `data` at byte `offset` to the device at once; copies in the
    /// cache are kept right. Not durable before a flush.
    ///
    /// # Errors
    /// `ReadOnly`; `Invalid` past the end; `NoSpace`, `Io`.
    pub fn write_direct(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, Stage::DATA)?;
        self.write_stage(Stage::DATA)
    }

    /// Gives `f` the `len` bytes at `offset`, which lie in one page, to change
    /// in place; they are dirty in `stage` afterwards. `f` must not use the cache.
    ///
    /// # Errors
    /// `ReadOnly`; `Invalid` past the end or over the border of a page; `Io`.
    pub fn update<R>(
        &self,
        offset: u64,
        len: usize,
        stage: Stage,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        check_range(offset, len, self.size)?;
        if self.dev.geometry().read_only {
            return Err(Kind::ReadOnly.into());
        }
        let at = (offset % PAGE as u64) as usize;
        self.with_page(offset, |page| {
            let r = f(page.data.get_mut(at..at + len)?);
            for s in page
                .stage
                .get_mut(at / SECTOR..(at + len).div_ceil(SECTOR))?
            {
                *s = if *s == CLEAN {
                    stage.0
                } else {
                    stage.0.max(*s)
                };
            }
            Some(r)
        })
    }

    /// Gives `f` the `len` bytes at `offset`, which lie in one page. `f` must
    /// not use the cache.
    ///
    /// # Errors
    /// `Invalid` past the end or over the border of a page; `Io`.
    pub fn view<R>(&self, offset: u64, len: usize, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        check_range(offset, len, self.size)?;
        let at = (offset % PAGE as u64) as usize;
        self.with_page(offset, |page| Some(f(page.data.get(at..at + len)?)))
    }

    fn with_page<R>(&self, offset: u64, f: impl FnOnce(&mut Page) -> Option<R>) -> Result<R> {
        let no = offset / PAGE as u64;
        let mut pages = self.pages.lock();
        if !pages.contains_key(&no) {
            while pages.len() as u64 >= self.options.memory / PAGE as u64 {
                let clean = pages.iter().find(|(_, p)| p.stage == [CLEAN; SECTORS]);
                let Some(n) = clean.map(|c| *c.0) else { break };
                pages.remove(&n);
            }
            let mut data = vec![0; PAGE];
            let n = (self.size - no * PAGE as u64).min(PAGE as u64) as usize;
            self.dev
                .read_at(no * PAGE as u64, data.get_mut(..n).unwrap_or_default())?;
            let stage = [CLEAN; SECTORS];
            pages.insert(
                no,
                Page {
                    data: data.into(),
                    stage,
                },
            );
        }
        let result = pages.get_mut(&no).and_then(f);
        result.ok_or_else(|| Error::note(Kind::Invalid, "range crosses a page"))
    }

    /// Forgets what the cache holds of the range, dirty or not: its content
    /// does not matter any more. Sectors of which only a part is in the range
    /// are kept.
    pub fn drop_range(&self, offset: u64, len: u64) {
        let first = offset.div_ceil(SECTOR as u64);
        let end = (offset.saturating_add(len)) / SECTOR as u64;
        let mut pages = self.pages.lock();
        for (no, page) in pages.iter_mut() {
            for (i, s) in page.stage.iter_mut().enumerate() {
                let sector = no * SECTORS as u64 + i as u64;
                if (first..end).contains(&sector) {
                    *s = CLEAN;
                }
            }
        }
        pages.retain(|no, page| {
            let at = no * SECTORS as u64;
            page.stage != [CLEAN; SECTORS] || at + SECTORS as u64 <= first || at >= end
        });
    }

    /// A hint that the range will be read soon.
    pub fn prefetch(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Makes durable all that was written, stage by stage with flushes between.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn commit(&self) -> Result<()> {
        for stage in 0..=Stage::LAST.0 {
            if self.count(|s| s == stage) > 0 {
                self.write_stage(Stage(stage))?;
                self.flush()?;
            }
        }
        self.flush()
    }

    /// Writes the dirty sectors of `stage`, without a flush.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn write_stage(&self, stage: Stage) -> Result<()> {
        let mut pages = self.pages.lock();
        for (no, page) in pages.iter_mut() {
            for (i, (s, data)) in page
                .stage
                .iter_mut()
                .zip(page.data.chunks(SECTOR))
                .enumerate()
            {
                let at = no * PAGE as u64 + (i * SECTOR) as u64;
                let n = self.size.saturating_sub(at).min(SECTOR as u64) as usize;
                if *s == stage.0 {
                    self.dev.write_at(at, data.get(..n).unwrap_or_default())?;
                    *s = CLEAN;
                }
            }
        }
        Ok(())
    }

    /// Makes durable what has reached the device.
    ///
    /// # Errors
    /// `Io`.
    pub fn flush(&self) -> Result<()> {
        self.dev.flush()
    }

    /// Dirty bytes in stages after 0.
    pub fn held(&self) -> u64 {
        self.count(|s| s != CLEAN && s > 0)
    }

    /// Dirty bytes.
    pub fn dirty(&self) -> u64 {
        self.count(|s| s != CLEAN)
    }

    fn count(&self, which: impl Fn(u8) -> bool) -> u64 {
        let pages = self.pages.lock();
        let sectors = pages.values().flat_map(|p| p.stage.iter());
        (sectors.filter(|s| which(**s)).count() * SECTOR) as u64
    }
}

/// Cuts a range at the borders of pages: the lengths of the parts.
fn pages_of(offset: u64, len: usize) -> impl Iterator<Item = usize> {
    let mut at = offset;
    let end = offset + len as u64;
    std::iter::from_fn(move || {
        let n = (end - at).min(PAGE as u64 - at % PAGE as u64) as usize;
        at += n as u64;
        (n > 0).then_some(n)
    })
}

fn buf_at(buf: &mut [u8], at: u64) -> &mut [u8] {
    buf.get_mut(at as usize..).unwrap_or_default()
}

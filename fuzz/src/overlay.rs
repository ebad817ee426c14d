//! A device that is cheap to change and to throw away, and that gives up when
//! it has been asked too much.

use crate::input::Input;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use volary_core::{BlockDevice, Error, Geometry, Kind, Result};

const PAGE: usize = 512;

/// A base that is shared and the pages that differ from it.
pub struct Overlay {
    base: Arc<[u8]>,
    pages: Mutex<BTreeMap<u64, [u8; PAGE]>>,
    fuel: AtomicU64,
    written: AtomicU64,
}

impl Overlay {
    /// Over `base`, whose length is a whole number of sectors. Each request
    /// takes one unit of fuel, and one more for each KiB.
    pub fn new(base: Arc<[u8]>, fuel: u64) -> Self {
        Self {
            base,
            pages: Mutex::default(),
            fuel: fuel.into(),
            written: 0.into(),
        }
    }

    /// Returns an overlay of `base` with up to 23 changes of up to 8 bytes each. The input chooses them;
    /// `place` returns the offset of each.
    pub fn damaged(
        base: Arc<[u8]>,
        fuel: u64,
        input: &mut Input<'_>,
        place: impl Fn(&mut Input<'_>) -> u64,
    ) -> Arc<Self> {
        let dev = Self::new(base, fuel);
        for _ in 0..input.byte() % 24 {
            let at = place(input);
            let count = usize::from(input.byte() % 9);
            dev.poke(at, input.bytes(count));
        }
        Arc::new(dev)
    }

    /// Requests that wrote something.
    pub fn writes(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Changes bytes without a request; what is past the end is left out.
    pub fn poke(&self, offset: u64, bytes: &[u8]) {
        let room = (self.base.len() as u64).saturating_sub(offset);
        let len = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if let Some(bytes) = bytes.get(..len) {
            self.store(offset, bytes);
        }
    }

    fn store(&self, offset: u64, bytes: &[u8]) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (number, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let (part, more) = rest.split_at(rest.len().min(PAGE - within));
            let page = pages
                .entry(number)
                .or_insert_with(|| self.base_page(number));
            if let Some(room) = page.get_mut(within..within + part.len()) {
                room.copy_from_slice(part);
            }
            at += part.len() as u64;
            rest = more;
        }
    }

    fn base_page(&self, number: u64) -> [u8; PAGE] {
        let start = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .saturating_mul(PAGE);
        let bytes = self.base.get(start..).and_then(|b| b.first_chunk::<PAGE>());
        bytes.copied().unwrap_or([0; PAGE])
    }

    fn check(&self, offset: u64, len: usize) -> Result<()> {
        let cost = 1 + len as u64 / 1024;
        let had = self.fuel.load(Relaxed);
        assert!(had >= cost, "out of fuel: too much work for this image");
        self.fuel.store(had - cost, Relaxed);
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.base.len() as u64 => Ok(()),
            _ => Err(Error::note(Kind::Invalid, "past the end of the device")),
        }
    }
}

impl BlockDevice for Overlay {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.base.len() as u64,
            sector: 512,
            read_only: false,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, buf.len())?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(base) = self.base.get(start..start + buf.len()) {
            buf.copy_from_slice(base);
        }
        let end = offset + buf.len() as u64;
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, page) in pages.range(offset / PAGE as u64..end.div_ceil(PAGE as u64)) {
            let page_start = number * PAGE as u64;
            let (from, to) = (page_start.max(offset), (page_start + PAGE as u64).min(end));
            let source = page.get((from - page_start) as usize..(to - page_start) as usize);
            let room = buf.get_mut((from - offset) as usize..(to - offset) as usize);
            if let (Some(source), Some(room)) = (source, room) {
                room.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(offset, data.len())?;
        self.written.fetch_add(1, Relaxed);
        self.store(offset, data);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

//! Access to the clusters of a volume.

use crate::disk::volume::Volume;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{BlockDevice, Error, Result};
use volary_ondisk::ahead::Stretch;

/// A volume, and the cache of its device.
pub(crate) struct Clusters {
    cache: Cache,
    volume: Volume,
}

impl Clusters {
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Self {
        let io_size = 64 << 10;
        Self {
            cache: Cache::new(dev, CacheOptions { memory, io_size }),
            volume,
        }
    }

    /// Returns the checked boot sector.
    pub(crate) fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Reads data that will probably not be read again, so that the cache need not keep it. In
    /// errors, `what_at` is the place of the metadata that refers to the data.
    ///
    /// # Errors
    /// `Corrupt` past the end of the device; `Io`.
    pub(crate) fn read_once(&self, at: u64, buf: &mut [u8], what_at: u64) -> Result<()> {
        if !self.is_there(at, buf.len()) {
            let found = format!("{} bytes at {at}", buf.len());
            let expected = format!("inside of the device of {} bytes", self.volume.device);
            return Err(Error::corrupt("run", what_at, found, expected));
        }
        self.cache.read_once(at, buf)
    }

    /// Reads metadata, which the cache keeps.
    ///
    /// # Errors
    /// `Corrupt` past the end of the device; `Io`.
    pub(crate) fn read(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        if !self.is_there(at, buf.len()) {
            let expected = format!("inside of the device of {} bytes", self.volume.device);
            return Err(Error::corrupt("record", at, "past the end", expected));
        }
        self.cache.read(at, buf)
    }

    fn is_there(&self, at: u64, len: usize) -> bool {
        let end = at.checked_add(len as u64);
        end.is_some_and(|end| end <= self.volume.device)
    }

    /// Reads stretches of bytes into the cache, as far as they can be read, while `goes_on` returns
    /// true.
    pub(crate) fn prefetch(&self, stretches: Vec<Stretch>, goes_on: &dyn Fn() -> bool) {
        self.cache.prefetch_all(stretches, goes_on);
    }
}

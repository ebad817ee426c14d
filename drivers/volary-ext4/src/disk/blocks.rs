//! The blocks of a volume: on its device, with those that its journal holds in their places.

use crate::disk::replayed::{Overlaid, Replayed};
use crate::disk::volume::Volume;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::{BlockDevice, Error, Place, Result};
use volary_ondisk::ahead::Stretch;

/// A volume and the device that it is on.
pub(crate) struct Blocks {
    cache: Cache,
    volume: Volume,
    /// Blocks whose newest contents are in the journal.
    replayed: Option<Arc<Replayed>>,
}

impl Blocks {
    /// Returns the blocks as they stand on the device.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Self {
        let io_size = 64 << 10;
        Self {
            cache: Cache::new(dev, CacheOptions { memory, io_size }),
            volume,
            replayed: None,
        }
    }

    /// Returns the blocks with those of the journal in their places. The superblock goes through the
    /// journal as well, and is read again.
    ///
    /// # Errors
    /// As [`Volume::read`].
    pub(crate) fn overlaid(
        dev: Arc<dyn BlockDevice>,
        replayed: Arc<Replayed>,
        is_verified: bool,
        memory: u64,
    ) -> Result<Self> {
        let over: Arc<dyn BlockDevice> = Arc::new(Overlaid::new(dev, replayed.clone()));
        let volume = Volume::read(&*over, is_verified)?;
        Ok(Self {
            replayed: Some(replayed),
            ..Self::new(over, volume, memory)
        })
    }

    /// Returns the checked superblock.
    pub(crate) fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Returns what the journal holds, if it was replayed.
    pub(crate) fn replayed(&self) -> Option<&Replayed> {
        self.replayed.as_deref()
    }

    /// Checks that a range of blocks can be read.
    ///
    /// # Errors
    /// `Corrupt`, naming `what`, if a part of the range is not on the volume and its device.
    pub(crate) fn check(&self, what: &'static str, at: u64, first: u64, count: u64) -> Result<()> {
        let there = self.volume.there();
        let is_inside = first >= self.volume.first_data_block
            && first.checked_add(count).is_some_and(|end| end <= there);
        if is_inside {
            return Ok(());
        }
        let found = format!("{count} blocks at {first}");
        let expected = format!("inside of {} to {there}", self.volume.first_data_block);
        Err(Error::corrupt(what, at, found, expected))
    }

    /// Reads a block. `what` names it, `at` where its number stands.
    ///
    /// # Errors
    /// `Corrupt` for a number past the end; `Io`.
    pub(crate) fn block(&self, what: &'static str, at: u64, number: u64) -> Result<Vec<u8>> {
        self.check(what, at, number, 1)?;
        self.bytes(number * self.volume.block, self.volume.block as usize)
    }

    /// Reads bytes that were found to be on the device.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.cache.read(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads bytes of data, which are not likely to be asked for again.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read_once(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.cache.read_once(at, buf)
    }

    /// Reads stretches of bytes into the cache, as far as they can be read, while `goes_on`.
    pub(crate) fn prefetch(&self, stretches: Vec<Stretch>, goes_on: &dyn Fn() -> bool) {
        self.cache.prefetch_all(stretches, goes_on);
    }

    /// Compares a checksum, unless they are not looked at.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn verify(&self, what: &'static str, at: u64, stored: u32, sum: u32) -> Result<()> {
        if sum == stored || !self.volume.is_verified {
            return Ok(());
        }
        let (found, expected) = (format!("{stored:#x}"), format!("{sum:#x}"));
        Err(Error::corrupt(what, at, found, expected))
    }

    /// Returns where a block stands on the device under the journal's, and how many of the `count` from
    /// it on follow it there.
    pub(crate) fn place(&self, number: u64, count: u64) -> (u64, Place) {
        let (count, at) = match &self.replayed {
            None => (count, Some(number * self.volume.block)),
            Some(replayed) => replayed.place(number, count),
        };
        (count, at.map_or(Place::Encoded, Place::Device))
    }
}

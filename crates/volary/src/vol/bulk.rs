//! Reads whole trees in device order.

use super::clock;
use super::error::VolResult;
use super::held::Held;
use crate::Source;
use std::sync::Arc;
use volary_bulk::{BulkFileRead, Consumer, Files, Options, Read, Shuffle, Summary};
use volary_core::{Caps, Result};

/// A bulk read that has not begun yet; see [`Vol::bulk`](crate::Vol::bulk).
#[derive(Debug)]
pub struct BulkRead {
    held: Arc<Held>,
    places: Vec<Vec<u8>>,
    options: Options,
}

impl BulkRead {
    pub(super) fn new<P: AsRef<[u8]>>(
        held: Arc<Held>,
        places: impl IntoIterator<Item = P>,
    ) -> Self {
        let options = Options {
            clock: Some(clock::stopwatch()),
            ..Options::default()
        };
        let places = places.into_iter().map(|place| place.as_ref().to_vec());
        Self {
            places: places.collect(),
            held,
            options,
        }
    }

    /// Sets how files are read.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Delivers in a loader's order: random, but the same for each seed, within a window of about
    /// `window` bytes of files.
    #[must_use]
    pub fn shuffle(mut self, seed: u64, window: u64) -> Self {
        self.options.shuffle = Some(Shuffle { seed, window });
        self
    }

    /// Begins to read, and returns an iterator over the files. Files larger than
    /// [`whole_max`](Options::whole_max) come in chunks.
    ///
    /// # Errors
    /// `Invalid` for options; `Io` if earlier changes cannot be written.
    pub fn files(self) -> VolResult<BulkFiles> {
        let begun = self.source().and_then(|source| {
            let options = self.options.clone();
            Files::new(options, vec![source])
        });
        let files = begun.map_err(|e| self.held.failed("read", e))?;
        Ok(BulkFiles {
            files,
            _held: self.held,
        })
    }

    /// Delivers everything to `consumer` without a copy. Calls it on as many threads as
    /// [`workers`](Options::workers) says.
    ///
    /// # Errors
    /// As [`files`](Self::files).
    pub fn run(self, consumer: &dyn Consumer) -> VolResult<Summary> {
        let run = self.source().and_then(|source| {
            let run = BulkFileRead::new(self.options.clone())?;
            Ok(run.run(&[source], consumer))
        });
        run.map_err(|e| self.held.failed("read", e))
    }

    /// Returns the source to read, after writing all changes so far to the device.
    fn source(&self) -> Result<volary_bulk::Source> {
        let held = &self.held;
        let changes = held.volume.caps().has(Caps::WRITE);
        if changes {
            held.volume.sync()?;
        }
        let source = volary_bulk::Source::new(held.session.clone()).places(self.places.clone());
        let source = match &held.device {
            Some(device) => source.on(Arc::clone(device)),
            None => source,
        };
        let is_elsewhere = match held.source {
            Source::Image { .. } | Source::Memory { .. } => false,
            // Others may change what a scheme reads.
            Source::Host { .. } | Source::Scheme { .. } => true,
            #[cfg(feature = "nfs-client")]
            Source::Nfs(_) => true,
        };
        Ok(if changes || is_elsewhere {
            source.live()
        } else {
            source
        })
    }
}

/// Iterates over the parts of a bulk read. Dropping it ends the read.
pub struct BulkFiles {
    files: Files,
    _held: Arc<Held>,
}

impl BulkFiles {
    /// Ends the read, and returns what it did.
    pub fn summary(self) -> Summary {
        self.files.summary()
    }
}

impl Iterator for BulkFiles {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        self.files.next()
    }
}

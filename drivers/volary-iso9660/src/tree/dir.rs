//! Directories: records one after the other, none of which crosses the border of a block.
//!
//! A block belongs to the directory whose first record is the nearest one before it, whatever
//! lengths directories claim. So a scan of all directories reads each block once.

use crate::disk::ondisk::flag;
use crate::disk::record::Record;
use crate::disk::volume::{Stretch, Volume};
use volary_block::Cache;
use volary_core::{Error, Kind, Result};

/// A file or directory as found in its directory: its record, and for a file of several sections
/// the places of them all.
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) sections: Vec<Stretch>,
    /// Whether there are more sections than are read, or one is interleaved.
    pub(crate) is_odd: bool,
    /// Whether there are more sections than are read.
    goes_on: bool,
}

/// The longest record, in bytes.
const RECORD_MAX: u64 = 255;

/// The most sections of a file that are read. With sections of 4 GiB, these are 16 TiB.
const SECTIONS_MAX: usize = 4096;

/// The most empty blocks of a directory that are skipped before a record. Writers leave none, but a
/// sparse image can claim any number.
const EMPTY_MAX: u64 = 64;

/// Reads directories.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) volume: &'a Volume,
}

impl Reader<'_> {
    /// Returns a directory or section, if it lies within the device.
    ///
    /// # Errors
    /// `Corrupt`, naming `what` at `at`.
    pub(crate) fn check(&self, what: &'static str, at: u64, stretch: Stretch) -> Result<Stretch> {
        let size = self.cache.size();
        if stretch.end() > size || stretch.start > size {
            let found = format!("{} bytes at {}", stretch.len, stretch.start);
            let expected = format!("inside of the device's {size} bytes");
            return Err(Error::corrupt(what, at, found, expected));
        }
        Ok(stretch)
    }

    /// Returns the first record at or after `at` in the directory. Afterwards, `at` is behind the
    /// record. If the record is invalid, `at` is behind its block. If nothing more can be read,
    /// `at` is the directory's end.
    ///
    /// # Errors
    /// `Corrupt` for an invalid record, for one that begins another directory, and for too many
    /// empty blocks; `Io`.
    pub(crate) fn record(&self, dir: Stretch, at: &mut u64) -> Result<Option<Record>> {
        let block = self.volume.block;
        let mut bytes = [0; RECORD_MAX as usize];
        for _ in 0..EMPTY_MAX {
            if *at >= dir.len {
                return Ok(None);
            }
            let here = *at;
            let room = (block - here % block).min(dir.len - here).min(RECORD_MAX);
            let bytes = bytes.get_mut(..room as usize).unwrap_or_default();
            *at = self.next_block(here);
            self.cache.read(dir.start + here, bytes)?;
            // Without a record here, the rest of the block is empty.
            let Some(record) = Record::parse(dir.start + here, bytes)? else {
                continue;
            };
            let begins_another = here > 0 && here.is_multiple_of(block) && self.begins(&record);
            if begins_another {
                *at = dir.len;
                let found = "the first record of another";
                return Err(Error::corrupt("directory", record.at, found, "its own"));
            }
            *at = here + record.len as u64;
            return Ok(Some(record));
        }
        let (place, found) = (dir.start.saturating_add(*at), format!("{EMPTY_MAX} empty"));
        *at = dir.len;
        let expected = "blocks that hold records";
        Err(Error::corrupt("directory", place, found, expected))
    }

    /// Returns whether this is the first record of a directory.
    fn begins(&self, record: &Record) -> bool {
        record.is_self() && record.is_dir() && self.volume.start(record) == record.at
    }

    /// Returns the first place after `offset` at which a block begins.
    fn next_block(&self, offset: u64) -> u64 {
        (offset / self.volume.block + 1) * self.volume.block
    }

    /// Returns the first file or directory at or after `at`. Skips the directory's records of
    /// itself and of its parent, and associated files. Afterwards, `at` is behind all its sections.
    ///
    /// # Errors
    /// As [`record`](Self::record); `Corrupt` for a file without its last section.
    pub(crate) fn found(&self, dir: Stretch, at: &mut u64) -> Result<Option<Found>> {
        loop {
            let Some(record) = self.record(dir, at)? else {
                return Ok(None);
            };
            if record.is_self() || record.is_parent() || record.has(flag::ASSOCIATED) {
                continue;
            }
            let found = self.with_sections(dir, record, at)?;
            if found.goes_on {
                self.pass_sections(dir, &found.record, at)?;
            }
            return Ok(Some(found));
        }
    }

    /// Returns a record with its further sections, which begin at `at`: all, or the first
    /// [`SECTIONS_MAX`].
    ///
    /// # Errors
    /// As [`found`](Self::found).
    pub(crate) fn with_sections(
        &self,
        dir: Stretch,
        record: Record,
        at: &mut u64,
    ) -> Result<Found> {
        let section = |record: &Record| Stretch {
            start: self.volume.start(record),
            len: record.size(),
        };
        let mut found = Found {
            sections: vec![section(&record)],
            is_odd: record.is_interleaved(),
            goes_on: record.has(flag::MULTI_EXTENT),
            record,
        };
        while found.goes_on && found.sections.len() < SECTIONS_MAX {
            let next = self.section(dir, &found.record, at)?;
            found.is_odd |= next.is_interleaved();
            found.sections.push(section(&next));
            found.goes_on = next.has(flag::MULTI_EXTENT);
        }
        found.is_odd |= found.goes_on;
        Ok(found)
    }

    /// Moves `at` behind the last section of `first`.
    fn pass_sections(&self, dir: Stretch, first: &Record, at: &mut u64) -> Result<()> {
        while self.section(dir, first, at)?.has(flag::MULTI_EXTENT) {}
        Ok(())
    }

    /// Returns a further section of `first`, at `at`. If the record there is not one, `at` stays.
    fn section(&self, dir: Stretch, first: &Record, at: &mut u64) -> Result<Record> {
        let mut behind = *at;
        match self.record(dir, &mut behind) {
            Ok(Some(next)) if next.name == first.name => {
                *at = behind;
                Ok(next)
            }
            Err(e) if e != Kind::Corrupt => Err(e),
            _ => Err(unfinished(first.at)),
        }
    }
}

fn unfinished(at: u64) -> Error {
    Error::corrupt(
        "file flags",
        at,
        "a file without its last section",
        "a further record of the same name",
    )
}

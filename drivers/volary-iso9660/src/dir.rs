//! Directories: records one after the other, none over the border of a block.

use crate::ondisk::flag;
use crate::record::Record;
use crate::volume::Volume;
use volary_block::Cache;
use volary_core::{Error, Result};

/// Where a directory or a section of a file lies, in bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Stretch {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// A file or directory as its directory has it: a record, and for a file of
/// several sections those that follow.
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) sections: Vec<Stretch>,
    /// Whether there are more sections than are read, or one is interleaved.
    pub(crate) is_odd: bool,
    /// The place after it in the directory, in bytes.
    pub(crate) end: u64,
}

/// The longest record, in bytes.
const RECORD_MAX: u64 = 255;

/// How many sections of a file are read: with sections of 4 GiB, 16 TiB.
const SECTIONS_MAX: usize = 4096;

/// Reads directories.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) volume: &'a Volume,
}

impl Reader<'_> {
    /// A directory or section, if it is inside of the device.
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

    /// The first record at or after `offset` in the directory, and the place
    /// after it.
    ///
    /// # Errors
    /// `Corrupt` for a record that makes no sense; `Io`.
    pub(crate) fn record(&self, dir: Stretch, offset: u64) -> Result<Option<(Record, u64)>> {
        let block = self.volume.block;
        let mut at = offset;
        let mut bytes = [0; RECORD_MAX as usize];
        while at < dir.len {
            let room = (block - at % block).min(dir.len - at).min(RECORD_MAX);
            let bytes = bytes.get_mut(..room as usize).unwrap_or_default();
            self.cache.read(dir.start + at, bytes)?;
            match Record::parse(dir.start + at, bytes)? {
                Some(record) => {
                    let end = at + record.len as u64;
                    return Ok(Some((record, end)));
                }
                // The rest of the block is empty.
                None => at = self.next_block(at),
            }
        }
        Ok(None)
    }

    /// The first place after `offset` at which a block begins.
    pub(crate) fn next_block(&self, offset: u64) -> u64 {
        (offset / self.volume.block + 1) * self.volume.block
    }

    /// The first file or directory at or after `offset`, without the directory's
    /// records of itself and of the one that holds it, and without files that are
    /// associated with others.
    ///
    /// # Errors
    /// As [`record`](Self::record); `Corrupt` for a section without its file.
    pub(crate) fn found(&self, dir: Stretch, offset: u64) -> Result<Option<Found>> {
        let mut at = offset;
        loop {
            let Some((record, end)) = self.record(dir, at)? else {
                return Ok(None);
            };
            if record.is_self() || record.is_parent() || record.has(flag::ASSOCIATED) {
                at = end;
                continue;
            }
            return self.with_sections(dir, record, end).map(Some);
        }
    }

    /// A record with the sections that follow it, from `end` on.
    ///
    /// # Errors
    /// As [`found`](Self::found).
    pub(crate) fn with_sections(&self, dir: Stretch, record: Record, end: u64) -> Result<Found> {
        let section = |record: &Record| Stretch {
            start: record.start(self.volume),
            len: record.size(),
        };
        let mut found = Found {
            sections: vec![section(&record)],
            is_odd: record.is_interleaved(),
            end,
            record,
        };
        let mut more = found.record.has(flag::MULTI_EXTENT);
        while more {
            let Some((next, end)) = self.record(dir, found.end)? else {
                return Err(unfinished(found.record.at));
            };
            if next.name != found.record.name {
                return Err(unfinished(found.record.at));
            }
            found.is_odd |= next.is_interleaved() || found.sections.len() >= SECTIONS_MAX;
            if found.sections.len() < SECTIONS_MAX {
                found.sections.push(section(&next));
            }
            found.end = end;
            more = next.has(flag::MULTI_EXTENT);
        }
        Ok(found)
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

//! Looks for names, and for room for a new one, with the help of the indexes.

use crate::directory::dir::{Dir, slack};
use crate::directory::index::{self, Indexes};
use crate::disk::ondisk::DIRBLKSIZ;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use parking_lot::Mutex;
use volary_core::{Kind, Result};

/// Searches directories.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) indexes: &'a Mutex<Indexes>,
}

impl Lookup<'_> {
    /// Searches a directory for a name. Returns the inode that it leads to and where its entry is.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn search(&self, dir: &Inode, name: &[u8]) -> Result<Option<(u32, u64)>> {
        let mut entries = Dir::new(self.reader, dir)?;
        match index::find(self.indexes, &mut entries, name, &|| Ok(())) {
            Err(e) if e == Kind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the first chunk with room for an entry of `need` bytes.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn room(&self, dir: &Inode, need: u64) -> Result<Option<u64>> {
        let indexed = self.indexes.lock().room(dir.ino, dir.size, need);
        if let Some(room) = indexed {
            return Ok(room);
        }
        let mut entries = Dir::new(self.reader, dir)?;
        let mut at = 0;
        while let Some(entry) = entries.entry(at)? {
            if slack(&entry).is_some_and(|(start, end)| end - start >= need) {
                return Ok(Some(entry.at - entry.at % DIRBLKSIZ as u64));
            }
            at = entry.end;
        }
        Ok(None)
    }

    /// Returns whether a directory has no entries but `.` and `..`.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn is_empty(&self, dir: &Inode) -> Result<bool> {
        let mut entries = Dir::new(self.reader, dir)?;
        let mut at = 0;
        while let Some(entry) = entries.entry(at)? {
            if entry.is_used() && !entry.is_dots() {
                return Ok(false);
            }
            at = entry.end;
        }
        Ok(true)
    }
}

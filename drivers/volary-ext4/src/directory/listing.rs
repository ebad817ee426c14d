//! Looking up and listing, with what fast commits changed.

use crate::directory::dir::{Chunk, Directory, Entry, can_be_asked_for};
use crate::fast::Fast;
use volary_core::{Cookie, Ctx, Kind, Result};

/// A cookie past the directory's end: so many of the entries that fast commits added were given.
const ADDED: u64 = 1 << 62;

/// A directory, as it is now.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    stored: Directory<'a>,
    fast: &'a Fast,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(stored: Directory<'a>, fast: &'a Fast) -> Self {
        Self { stored, fast }
    }

    /// Returns the number of the directory's inode.
    fn ino(&self) -> u32 {
        self.stored.inode().ino
    }

    /// Returns the entry of this name that stands in the directory.
    ///
    /// # Errors
    /// `Interrupted`; `Corrupt`; `Io`.
    fn find_stored(&self, cx: &Ctx<'_>, name: &[u8]) -> Result<Option<Entry>> {
        let mut start = 0;
        while let Some(chunk) = self.stored.chunk(start)? {
            cx.check_cancel()?;
            start = chunk.end();
            let mut place = chunk.start;
            while let Some(entry) = self.stored.entry(&chunk, place)? {
                if entry.name == name {
                    return Ok(Some(entry));
                }
                place = entry.end;
            }
        }
        Ok(None)
    }

    /// Returns the entry of this name, as it is now.
    ///
    /// # Errors
    /// `Interrupted`; `Corrupt`; `Io`.
    pub(crate) fn find(&self, cx: &Ctx<'_>, name: &[u8]) -> Result<Option<Entry>> {
        if let Some(index) = self.fast.find_added(self.ino(), name) {
            return Ok(self.added_entry(index));
        }
        if self.fast.is_removed(self.ino(), name) {
            return Ok(None);
        }
        self.find_stored(cx, name)
    }

    fn added_entry(&self, index: usize) -> Option<Entry> {
        let (name, ino) = self.fast.added(self.ino()).get(index)?;
        Some(Entry {
            ino: *ino,
            kind: None,
            name: name.clone(),
            end: ADDED + index as u64 + 1,
        })
    }

    /// Gives `each` the entries from a cookie on, without those of the directory itself and of the
    /// one that holds it, and those that nobody can ask for. True at the end, false if `each`
    /// wanted no more.
    ///
    /// # Errors
    /// `Invalid` for a cookie at which no entry ends; `Interrupted`; `Corrupt`; `Io`; of `each`.
    pub(crate) fn list(
        &self,
        cx: &Ctx<'_>,
        from: Cookie,
        mut each: impl FnMut(&Entry) -> Result<bool>,
    ) -> Result<bool> {
        let mut index = 0;
        if from.0 < ADDED {
            let mut place = self.place_of(from.0)?;
            while let Some(chunk) = self.chunk_at(place)? {
                cx.check_cancel()?;
                while let Some(entry) = self.stored.entry(&chunk, place)? {
                    place = entry.end;
                    let is_shown = !entry.is_dot()
                        && can_be_asked_for(&entry.name)
                        && !self.fast.is_removed(self.ino(), &entry.name);
                    if is_shown && !each(&entry)? {
                        return Ok(false);
                    }
                }
                place = chunk.end();
            }
        } else {
            index = usize::try_from(from.0 - ADDED).unwrap_or(usize::MAX);
            if index > self.fast.added(self.ino()).len() {
                return Err(Kind::Invalid.into());
            }
        }
        while let Some(entry) = self.added_entry(index) {
            index += 1;
            if can_be_asked_for(&entry.name) && !each(&entry)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn chunk_at(&self, place: u64) -> Result<Option<Chunk>> {
        match place < self.stored.end() {
            true => self.stored.chunk(self.stored.chunk_start(place)),
            false => Ok(None),
        }
    }

    /// Returns the place that a cookie stands for.
    fn place_of(&self, at: u64) -> Result<u64> {
        let start = self.stored.chunk_start(at);
        if at > self.stored.end() {
            return Err(Kind::Invalid.into());
        }
        if start == at {
            return Ok(at);
        }
        let chunk = self.stored.chunk(start)?.ok_or(Kind::Invalid)?;
        let mut place = start;
        while place < at {
            let raw = self.stored.raw_entry(&chunk, place)?;
            place = raw.ok_or(Kind::Invalid)?.2;
        }
        match place == at {
            true => Ok(at),
            false => Err(Kind::Invalid.into()),
        }
    }
}

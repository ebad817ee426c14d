//! Telling of problems, and the changes of entries and chains that mending is made of.

use super::findings::{Code, Reporter, Where};
use super::volume::{Dir, NONE, Reader, Volume};
use super::walk::{Problem, Walk};
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, FREE, attr};
use crate::volume::time::{Zone, set_access, set_create, set_write};
use std::collections::HashSet;
use volary_core::Result;
use zerocopy::{FromZeros, IntoBytes, transmute_ref};

/// What all mending is made of: the volume, what a walk saw of it, and whom findings are told.
pub(super) struct Mender<'a, 'r> {
    pub(super) vol: &'a mut Volume,
    pub(super) walk: &'a mut Walk,
    pub(super) reporter: &'a mut Reporter<'r>,
}

impl<'a, 'r> Mender<'a, 'r> {
    pub(super) fn new(
        vol: &'a mut Volume,
        walk: &'a mut Walk,
        reporter: &'a mut Reporter<'r>,
    ) -> Self {
        Self {
            vol,
            walk,
            reporter,
        }
    }
}

impl Mender<'_, '_> {
    /// Returns a directory of the walk.
    pub(super) fn dir(&self, number: u32) -> Dir {
        let root = Dir {
            cluster: self.vol.layout.root_cluster,
            clusters: 0,
            parent: 0,
            first: NONE,
            slot: NONE,
        };
        self.walk.dirs.get(number as usize).copied().unwrap_or(root)
    }

    /// Returns the path of an entry.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn path(&mut self, dir: u32, slot: u32) -> Result<Vec<u8>> {
        self.vol.path(&self.walk.dirs, dir, slot)
    }

    /// Returns where an entry is, for a finding.
    pub(super) fn place(&mut self, dir: u32, slot: u32) -> Result<Where> {
        let path = self.path(dir, slot)?;
        let node = self.dir(dir);
        let offset = match slot {
            NONE if node.cluster == 0 => Some(self.vol.layout.root_offset()),
            NONE => Some(self.vol.layout.cluster_offset(node.cluster)),
            slot => self.vol.slot_offset(&node, slot)?,
        };
        Ok(Where {
            path: Some(path),
            offset,
        })
    }

    /// Tells of a problem; whether to mend it.
    pub(super) fn tell(
        &mut self,
        code: Code,
        problem: &Problem,
        message: String,
        repair: impl Into<String>,
    ) -> Result<bool> {
        let at = self.place(problem.dir, problem.slot)?;
        let key = at.offset.unwrap_or(0);
        Ok(self.reporter.tell(code, key, at, message, repair))
    }

    /// Changes the short entry that a problem names.
    pub(super) fn change(
        &mut self,
        problem: &Problem,
        f: impl FnOnce(&mut DirEntry),
    ) -> Result<()> {
        let dir = self.dir(problem.dir);
        let mut entry = self.vol.entry(&dir, problem.slot)?;
        f(&mut entry);
        self.vol.put_entry(&dir, problem.slot, &entry)
    }

    /// Takes away the entry that a problem names, with its long name.
    pub(super) fn remove(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        self.vol.free_slots(&dir, problem.first, problem.slot)
    }

    /// Returns whether the entry that a problem names is a directory's, or the
    /// problem is the root directory's.
    pub(super) fn is_dir(&mut self, problem: &Problem) -> Result<bool> {
        if problem.slot == NONE {
            return Ok(true);
        }
        let dir = self.dir(problem.dir);
        Ok(self.vol.entry(&dir, problem.slot)?.is_dir())
    }

    /// Ends a chain; frees the rest if it is sound, else leaves it to be found
    /// as lost.
    pub(super) fn drop_excess(&mut self, last: u32, clean: bool) -> Result<()> {
        let mut next = self.vol.fat.link(last)?;
        self.vol.cut(last)?;
        let mut left = self.vol.layout.cluster_count;
        while let (true, super::fat::Link::Next(n)) = (clean && left > 0, next) {
            next = self.vol.fat.link(n)?;
            self.vol.set_link(n, 0)?;
            left -= 1;
        }
        Ok(())
    }

    /// Sets the first cluster of an entry.
    pub(super) fn set_start(&mut self, problem: &Problem, start: u32) -> Result<()> {
        let fat32 = self.vol.layout.is_fat32();
        self.change(problem, |e| e.set_first_cluster(start, fat32))
    }

    /// Returns an entry of the time of the check.
    pub(super) fn new_entry(&self, name: [u8; 11], attr: u8, start: u32) -> DirEntry {
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = name;
        entry.DIR_Attr = attr;
        entry.set_first_cluster(start, self.vol.layout.is_fat32());
        set_write(&mut entry, self.vol.now, Zone(0));
        set_access(&mut entry, self.vol.now, Zone(0));
        set_create(&mut entry, self.vol.now, Zone(0));
        entry
    }

    /// Takes a long name away.
    pub(super) fn drop_long(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.dir(problem.dir);
        match problem.slot.checked_sub(1) {
            Some(last) if problem.first <= last => self.vol.free_slots(&dir, problem.first, last),
            _ => Ok(()),
        }
    }

    /// Returns how the short name of an entry is shown.
    pub(super) fn short_shown(&mut self, dir: &Dir, slot: u32) -> Result<Vec<u8>> {
        let entry = self.vol.entry(dir, slot)?;
        let mut out = Vec::new();
        self.vol
            .names
            .show_short(&entry.DIR_Name, entry.DIR_NTRes, &mut out);
        Ok(out)
    }

    /// Makes end marks before slot `to` free slots.
    pub(super) fn free_ends(&mut self, dir: &Dir, from: u32, to: u32) -> Result<()> {
        for slot in from..to {
            if self.vol.raw(dir, slot)?.first() == Some(&0) {
                self.vol.free_slots(dir, slot, slot)?;
            }
        }
        Ok(())
    }

    /// Fills a free cluster as the first one of a directory. With `more`, the
    /// directory goes on in another one: there is no end mark then.
    pub(super) fn fresh_dir(&mut self, cluster: u32, parent: u32, more: bool) -> Result<()> {
        let mut bytes = Vec::with_capacity(self.vol.layout.cluster_len as usize);
        for (name, start) in [(DOT, cluster), (DOT_DOT, parent)] {
            let entry = self.new_entry(name, attr::DIRECTORY, start);
            bytes.extend_from_slice(entry.as_bytes());
        }
        let filling = if more { FREE } else { 0 };
        bytes.resize(self.vol.layout.cluster_len as usize, filling);
        let offset = self.vol.layout.cluster_offset(cluster);
        self.vol.disk.fill(offset, &bytes)
    }

    /// Returns the bytes of a cluster that may be a directory's.
    pub(super) fn peek(&mut self, cluster: u32) -> Result<Vec<u8>> {
        let mut buf = vec![0; self.vol.layout.cluster_len as usize];
        let offset = self.vol.layout.cluster_offset(cluster);
        self.vol.disk.read_dir(offset, &mut buf)?;
        Ok(buf)
    }

    /// Calls `each` with all bytes of a directory.
    pub(super) fn read_dir(&mut self, number: u32, mut each: impl FnMut(u32, &[u8])) -> Result<()> {
        let dir = self.dir(number);
        let mut reader = Reader::new(&dir);
        let mut buf = Vec::new();
        while let Some(piece) = reader.fill(self.vol, &mut buf)? {
            each(piece.slot, &buf);
        }
        Ok(())
    }

    /// Returns all short names of a directory.
    pub(super) fn short_names(&mut self, dir: u32) -> Result<HashSet<[u8; 11]>> {
        let mut names = HashSet::new();
        let mut ended = false;
        self.read_dir(dir, |_, bytes| {
            for raw in bytes.as_chunks::<32>().0 {
                let entry: &DirEntry = transmute_ref!(raw);
                match raw.first() {
                    None | Some(&0) => ended = true,
                    Some(&FREE) => {}
                    Some(_) if ended || entry.is_long() => {}
                    Some(_) => {
                        names.insert(entry.DIR_Name);
                    }
                }
            }
        })?;
        Ok(names)
    }
}

//! The inodes in use, and which fragments are taken: what phase 1 finds out and the other phases
//! use.

use super::likely::Fields;
use crate::disk::volume::Volume;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Error, FileKind, Kind, Result};
use volary_ondisk::Bits;

/// An inode in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) kind: FileKind,
    /// Links that the inode says it has, and links that were found.
    pub(super) nlink: i16,
    pub(super) found: u32,
    /// The directory that holds a directory; 0 until one is found.
    pub(super) parent: u32,
}

/// What phase 1 finds out.
pub(super) struct Inodes {
    pub(super) all: BTreeMap<u32, Seen>,
    /// Corrected fields of inodes whose fields contradict each other.
    pub(super) likely: BTreeMap<u32, Fields>,
    /// Fragments of the volume.
    size: u64,
    /// Fragments that the format or an inode takes.
    taken: Bits,
    /// Fragments that two inodes claim.
    shared: Bits,
    free: u64,
    /// Fragments that are promised to copies of blocks.
    pub(super) promised: BTreeSet<u64>,
    /// Whether some blocks of inodes are unknown.
    pub(super) is_partial: bool,
}

impl Inodes {
    /// Returns a table in which only the format's own fragments are taken.
    ///
    /// # Errors
    /// As for [`check_room`](Self::check_room).
    pub(super) fn new(volume: &Volume) -> Result<Self> {
        let mut inodes = Self {
            all: BTreeMap::new(),
            likely: BTreeMap::new(),
            size: volume.size,
            taken: Bits::default(),
            shared: Bits::default(),
            free: volume.size,
            promised: BTreeSet::new(),
            is_partial: false,
        };
        for group in 0..volume.ncg {
            let (first, end) = volume.reserved(group);
            inodes.take_system(first, end);
            inodes.check_room()?;
        }
        let summaries = volume.csaddr + volume.cssize.div_ceil(volume.fsize);
        inodes.take_system(volume.csaddr, summaries);
        Ok(inodes)
    }

    /// Checks that the maps have not run out of memory.
    ///
    /// # Errors
    /// `TooBig` if there is not enough memory to note what is taken.
    pub(super) fn check_room(&self) -> Result<()> {
        if self.taken.is_full() || self.shared.is_full() {
            let words = "the volume is too large to be checked in memory";
            return Err(Error::note(Kind::TooBig, words));
        }
        Ok(())
    }

    /// Returns an inode. If its fields are damaged, it is the inode as it likely was.
    ///
    /// # Errors
    /// As for [`Reader::inode`].
    pub(super) fn inode(&self, reader: &Reader<'_>, ino: u32) -> Result<Inode> {
        let Some(fields) = self.likely.get(&ino) else {
            return reader.inode(ino.into());
        };
        let inode = reader.inode_as_it_is(ino.into())?;
        fields.apply(&inode).check(reader.volume)
    }

    fn take_system(&mut self, first: u64, end: u64) {
        for fragment in first..end {
            self.take(fragment);
        }
    }

    /// Takes a fragment. Returns whether it was free before.
    pub(super) fn take(&mut self, fragment: u64) -> bool {
        let is_new = fragment < self.size && self.taken.insert(fragment);
        self.free -= u64::from(is_new);
        is_new
    }

    pub(super) fn is_taken(&self, fragment: u64) -> bool {
        fragment >= self.size || self.taken.has(fragment)
    }

    /// Notes that two inodes claim a fragment.
    pub(super) fn share(&mut self, fragment: u64) {
        if fragment < self.size {
            self.shared.insert(fragment);
        }
    }

    /// Returns whether two inodes claim a fragment, as far as is known yet.
    pub(super) fn is_shared(&self, fragment: u64) -> bool {
        self.shared.has(fragment)
    }

    /// Returns whether any fragment has two claims.
    pub(super) fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    pub(super) fn free_fragments(&self) -> u64 {
        self.free
    }

    pub(super) fn dirs(&self) -> u64 {
        let dirs = self.all.values().filter(|seen| seen.kind == FileKind::Dir);
        dirs.count() as u64
    }

    pub(super) fn files(&self) -> u64 {
        self.all.len() as u64 - self.dirs()
    }
}

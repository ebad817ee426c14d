//! What fast commits changed (journal.rst, "Fast commits"): kept beside the volume, by inode and
//! by directory, for they say what was done and not what blocks became.

use crate::disk::ondisk::{EXTENT_MAGIC, I_BLOCK, I_GENERATION, InodeHead, iflag};
use crate::disk::run::Run;
use std::collections::{BTreeMap, HashMap, HashSet};
use volary_core::{FileKind, Result};
use zerocopy::FromBytes;

/// All that fast commits changed.
#[derive(Default)]
pub(crate) struct Fast {
    inodes: HashMap<u32, Changed>,
    dirs: HashMap<u32, Edits>,
}

#[derive(Default)]
struct Changed {
    /// The inode's bytes in the commit, without the extent tree, or the block map of a file or
    /// directory: ranges come by tags of their own, see [`merge`].
    raw: Option<Vec<u8>>,
    /// Ranges that were mapped anew, by their first block.
    ranges: BTreeMap<u64, Run>,
    /// Names more or less that it has: of a directory, the `..` of those in it.
    links: i32,
}

/// What changed in a directory.
#[derive(Default)]
struct Edits {
    removed: HashSet<Vec<u8>>,
    added: Vec<(Vec<u8>, u32)>,
    /// Indexes in `added`, by name.
    places: HashMap<Vec<u8>, usize>,
    /// The parent directory, if a fast commit made this directory.
    parent: Option<u32>,
}

impl Edits {
    fn add(&mut self, name: &[u8], ino: u32) {
        match self.places.get(name).and_then(|at| self.added.get_mut(*at)) {
            Some(entry) => entry.1 = ino,
            None => {
                self.places.insert(name.to_vec(), self.added.len());
                self.added.push((name.to_vec(), ino));
            }
        }
        // The entry of this name on the volume, if there is one, is another.
        self.removed.insert(name.to_vec());
    }

    fn remove(&mut self, name: &[u8]) {
        self.removed.insert(name.to_vec());
        let Some(at) = self.places.remove(name) else {
            return;
        };
        self.added.swap_remove(at);
        if let Some((moved, _)) = self.added.get(at) {
            self.places.insert(moved.clone(), at);
        }
    }
}

impl Fast {
    pub(crate) fn is_empty(&self) -> bool {
        self.inodes.is_empty() && self.dirs.is_empty()
    }

    /// Puts what was changed of an inode into its bytes. Returns whether anything was.
    pub(crate) fn change_inode(&self, ino: u32, bytes: &mut [u8]) -> bool {
        let Some(changed) = self.inodes.get(&ino) else {
            return false;
        };
        if let Some(raw) = &changed.raw {
            merge(bytes, raw);
        }
        // `i_links_count` stands at 0x1a.
        if let Some([low, high]) = bytes.get_mut(0x1a..0x1c) {
            // What a directory that was made says counts those in it already.
            let links = match self.is_new_dir(ino) {
                true => 2,
                false => i32::from(u16::from_le_bytes([*low, *high])),
            };
            let links =
                u16::try_from(links.saturating_add(changed.links).max(0)).unwrap_or(u16::MAX);
            [*low, *high] = links.to_le_bytes();
        }
        true
    }

    /// Returns the run at `first`, where `stored` says what is on the volume.
    ///
    /// # Errors
    /// Of `stored`.
    pub(crate) fn run(
        &self,
        ino: u32,
        first: u64,
        stored: impl FnOnce() -> Result<Run>,
    ) -> Result<Run> {
        let Some(changed) = self.inodes.get(&ino).filter(|one| !one.ranges.is_empty()) else {
            return stored();
        };
        let before = changed.ranges.range(..=first).next_back();
        if let Some((_, run)) = before.filter(|(_, run)| first < run.end()) {
            return Ok(run.part(first, u64::MAX));
        }
        let next = changed.ranges.range(first..).next();
        Ok(stored()?.part(first, next.map_or(u64::MAX, |(at, _)| *at)))
    }

    /// Returns whether the directory was made by a fast commit: it has no entries but those that were added.
    pub(crate) fn is_new_dir(&self, ino: u32) -> bool {
        self.parent(ino).is_some()
    }

    /// Returns the directory that holds one that was made.
    pub(crate) fn parent(&self, ino: u32) -> Option<u32> {
        self.dirs.get(&ino)?.parent
    }

    /// Returns whether an entry that stands in a directory was removed.
    pub(crate) fn is_removed(&self, dir: u32, name: &[u8]) -> bool {
        let edits = self.dirs.get(&dir);
        edits.is_some_and(|edits| edits.removed.contains(name))
    }

    /// Returns the entries that were added to a directory.
    pub(crate) fn added(&self, dir: u32) -> &[(Vec<u8>, u32)] {
        self.dirs.get(&dir).map_or(&[], |edits| &edits.added)
    }

    /// Returns the index in [`added`](Self::added) of the entry with this name.
    pub(crate) fn find_added(&self, dir: u32, name: &[u8]) -> Option<usize> {
        self.dirs.get(&dir)?.places.get(name).copied()
    }

    /// Returns whether an entry of this name was added for this inode.
    pub(crate) fn has_added(&self, dir: u32, name: &[u8], ino: u32) -> bool {
        let entry = self
            .find_added(dir, name)
            .and_then(|at| self.added(dir).get(at));
        entry.is_some_and(|(_, there)| *there == ino)
    }

    /// Takes an inode's bytes, as a commit has them. `is_counted` says whether its names are counted in
    /// them.
    pub(crate) fn set_inode(&mut self, ino: u32, raw: Vec<u8>, is_counted: bool) {
        let changed = self.inodes.entry(ino).or_default();
        changed.raw = Some(raw);
        if is_counted {
            changed.links = 0;
        }
    }

    /// Adds an entry to a directory.
    pub(crate) fn add(&mut self, dir: u32, name: &[u8], ino: u32) {
        self.dirs.entry(dir).or_default().add(name, ino);
    }

    /// Removes an entry from a directory.
    pub(crate) fn remove(&mut self, dir: u32, name: &[u8]) {
        self.dirs.entry(dir).or_default().remove(name);
    }

    /// Takes a directory that was made in `parent`.
    pub(crate) fn make_dir(&mut self, ino: u32, parent: u32) {
        self.dirs.entry(ino).or_default().parent = Some(parent);
    }

    /// Maps a range anew.
    pub(crate) fn set_range(&mut self, ino: u32, run: Run) {
        let ranges = &mut self.inodes.entry(ino).or_default().ranges;
        let end = run.end();
        // What is covered goes; what reaches past either side is cut.
        let first = ranges.range(..run.first).next_back();
        let first = first.filter(|(_, old)| old.end() > run.first);
        let mut cut: Vec<Run> = first.map(|(_, old)| *old).into_iter().collect();
        cut.extend(ranges.range(run.first..end).map(|(_, old)| *old));
        for old in cut {
            ranges.remove(&old.first);
            if old.first < run.first {
                ranges.insert(old.first, old.part(old.first, run.first));
            }
            if old.end() > end {
                ranges.insert(end, old.part(end, u64::MAX));
            }
        }
        ranges.insert(run.first, run);
    }

    /// Counts names more or less that an inode has.
    pub(crate) fn count(&mut self, ino: u32, more: i32) {
        let links = &mut self.inodes.entry(ino).or_default().links;
        *links = links.saturating_add(more);
    }
}

/// Puts an inode that was written by a fast commit over the one on the volume. What maps its
/// blocks stays, unless it is no map: the ranges come by tags of their own.
fn merge(bytes: &mut [u8], raw: &[u8]) {
    let map: Vec<u8> = bytes
        .get(I_BLOCK..I_GENERATION)
        .unwrap_or_default()
        .to_vec();
    for (to, from) in bytes.iter_mut().zip(raw) {
        *to = *from;
    }
    let Ok((head, _)) = InodeHead::read_from_prefix(raw) else {
        return;
    };
    let flags = head.i_flags.get();
    let is_file = matches!(
        FileKind::from_mode(head.i_mode.get().into()),
        Some(FileKind::File | FileKind::Dir)
    );
    let keeps = match flags & (iflag::EXTENTS | iflag::INLINE_DATA) {
        iflag::EXTENTS => true,
        0 => is_file,
        _ => false,
    };
    let Some(room) = bytes.get_mut(I_BLOCK..I_GENERATION).filter(|_| keeps) else {
        return;
    };
    let has_tree = map.starts_with(&EXTENT_MAGIC.to_le_bytes());
    match flags & iflag::EXTENTS != 0 && !has_tree {
        // An empty tree with room for four.
        true => {
            room.fill(0);
            let head = [EXTENT_MAGIC.to_le_bytes(), [0; 2], [4, 0]].concat();
            for (to, from) in room.iter_mut().zip(head) {
                *to = from;
            }
        }
        false => room.copy_from_slice(&map),
    }
}

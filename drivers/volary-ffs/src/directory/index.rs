//! Indexes of directories in memory: where names are, by their hash, and how much room each chunk
//! has. The BSDs after 4.4BSD call this dirhash. A directory is indexed once searches have read as
//! many bytes as it has. Every change of an entry updates the index, and an undone change drops it.
//! The memory is bounded: the least recently used directory is dropped first.

use crate::directory::dir::{Dir, slack};
use crate::disk::ondisk::DIRBLKSIZ;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use volary_core::{Kind, Result};

/// The cost of a directory, a name and a chunk, in bytes.
const DIR_COST: usize = 192;
const NAME_COST: usize = 20;
const CHUNK_COST: usize = 2;

/// What is known of directories.
pub(crate) struct Indexes {
    dirs: HashMap<u32, Known>,
    /// The cost of all of them, and the limit.
    held: usize,
    most: usize,
    /// Counts searches and changes.
    clock: u64,
}

/// What is known of a directory.
#[derive(Default)]
struct Known {
    /// Where the last search found its entry. Programs often look names up in the order of the
    /// listing.
    last: u64,
    /// Bytes that searches without an index have read.
    gone: u64,
    /// The clock's value at the last use.
    used: u64,
    index: Option<Index>,
}

/// A directory's names and room.
#[derive(Default)]
struct Index {
    /// Hashes of names, with where their entries begin.
    names: BTreeSet<(u32, u32)>,
    /// The longest unused room of an entry in each chunk.
    rooms: Vec<u16>,
}

/// How to search for a name.
enum Way {
    /// The name can only be at these places.
    Places(Vec<u64>),
    /// Search the directory from here on, and then from its start.
    Search(u64),
    /// Build an index first.
    Build,
}

impl Known {
    fn cost(&self) -> usize {
        DIR_COST + self.index.as_ref().map_or(0, Index::cost)
    }
}

impl Index {
    fn cost(&self) -> usize {
        self.names.len() * NAME_COST + self.rooms.len() * CHUNK_COST
    }

    /// Returns whether the index fits a directory of this size.
    fn is_of(&self, size: u64) -> bool {
        self.rooms.len() as u64 * DIRBLKSIZ as u64 == size
    }

    /// Indexes a directory. Returns `None` if the index would cost more than `most`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`; those of `go_on`.
    fn build(
        dir: &mut Dir<'_>,
        most: usize,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Self>> {
        let mut index = Self::default();
        let mut at = 0;
        while let Some(entry) = dir.entry(at)? {
            if entry.is_used() {
                let Ok(place) = u32::try_from(entry.at) else {
                    return Ok(None);
                };
                index.names.insert((hash(entry.name), place));
            }
            let room = slack(&entry).map_or(0, |(start, end)| end - start);
            if entry.at.is_multiple_of(DIRBLKSIZ as u64) {
                go_on()?;
                index.rooms.push(0);
            }
            if let Some(most) = index.rooms.last_mut() {
                *most = (*most).max(u16::try_from(room).unwrap_or(0));
            }
            at = entry.end;
            if index.cost() > most {
                return Ok(None);
            }
        }
        Ok(Some(index))
    }
}

impl Indexes {
    /// Returns an empty table that may use `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            dirs: HashMap::new(),
            held: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            clock: 0,
        }
    }

    fn way(&mut self, dir: u32, size: u64, name: &[u8]) -> Way {
        self.clock += 1;
        let Some(known) = self.dirs.get_mut(&dir) else {
            return Way::Search(0);
        };
        known.used = self.clock;
        match &known.index {
            Some(index) if index.is_of(size) => {
                let hash = hash(name);
                let places = index.names.range((hash, 0)..=(hash, u32::MAX));
                Way::Places(places.map(|(_, place)| (*place).into()).collect())
            }
            _ if known.gone >= size => Way::Build,
            _ => Way::Search(known.last),
        }
    }

    /// Changes what is known of a directory, and keeps the limit.
    fn set(&mut self, dir: u32, change: impl FnOnce(&mut Known)) {
        self.clock += 1;
        let known = self.dirs.entry(dir).or_insert_with(|| {
            self.held += DIR_COST;
            Known::default()
        });
        known.used = self.clock;
        self.held -= known.cost();
        change(known);
        self.held += known.cost();
        while self.held > self.most {
            let oldest = self.dirs.iter().min_by_key(|(_, known)| known.used);
            let Some(oldest) = oldest.map(|(&dir, _)| dir) else {
                break;
            };
            self.forget(oldest);
        }
    }

    /// Changes a directory's index, if it has one.
    fn update(&mut self, dir: u32, change: impl FnOnce(&mut Index)) {
        if self
            .dirs
            .get(&dir)
            .is_some_and(|known| known.index.is_some())
        {
            self.set(dir, |known| {
                if let Some(index) = &mut known.index {
                    change(index);
                }
            });
        }
    }

    /// Drops what is known of a directory.
    pub(crate) fn forget(&mut self, dir: u32) {
        if let Some(known) = self.dirs.remove(&dir) {
            self.held -= known.cost();
        }
    }

    /// Notes a new entry.
    pub(crate) fn add(&mut self, dir: u32, name: &[u8], at: u64) {
        match u32::try_from(at) {
            Ok(at) => self.update(dir, |index| {
                index.names.insert((hash(name), at));
            }),
            Err(_) => self.forget(dir),
        }
    }

    /// Notes that an entry was removed.
    pub(crate) fn remove(&mut self, dir: u32, name: &[u8], at: u64) {
        let place = (hash(name), u32::try_from(at).unwrap_or(u32::MAX));
        self.update(dir, |index| {
            index.names.remove(&place);
        });
    }

    /// Sets the longest room of the chunk that begins at `at`. The chunk may be a new one.
    pub(crate) fn set_room(&mut self, dir: u32, at: u64, room: usize) {
        let chunk = usize::try_from(at / DIRBLKSIZ as u64).unwrap_or(usize::MAX);
        let room = u16::try_from(room).unwrap_or(0);
        self.update(dir, |index| {
            if chunk == index.rooms.len() {
                index.rooms.push(0);
            }
            if let Some(longest) = index.rooms.get_mut(chunk) {
                *longest = room;
            }
        });
    }

    /// Returns the first chunk of a directory with room for an entry of `need` bytes, or
    /// `Some(None)` if no chunk has it. Returns `None` if the directory is not indexed.
    pub(crate) fn room(&self, dir: u32, size: u64, need: u64) -> Option<Option<u64>> {
        let index = self.dirs.get(&dir)?.index.as_ref()?;
        let mut rooms = index.is_of(size).then_some(index.rooms.iter())?;
        let chunk = rooms.position(|&room| u64::from(room) >= need);
        Some(chunk.map(|chunk| chunk as u64 * DIRBLKSIZ as u64))
    }
}

/// Returns the inode and the place of the first entry with this name.
///
/// # Errors
/// `NotFound`; `Corrupt` for an invalid entry on the way; `Io`; those of `go_on`, which is called
/// during a long search.
pub(crate) fn find(
    indexes: &Mutex<Indexes>,
    dir: &mut Dir<'_>,
    name: &[u8],
    go_on: &dyn Fn() -> Result<()>,
) -> Result<(u32, u64)> {
    let (ino, size) = (dir.inode.ino, dir.inode.size);
    let mut way = indexes.lock().way(ino, size, name);
    if matches!(way, Way::Build) {
        let most = indexes.lock().most.saturating_sub(DIR_COST);
        // A damaged directory gets no index. The search reports the damage if it meets it.
        let index = match Index::build(dir, most, go_on) {
            Err(e) if e == Kind::Corrupt || e == Kind::Io => None,
            index => index?,
        };
        let mut indexes = indexes.lock();
        indexes.set(ino, |known| (known.index, known.gone) = (index, 0));
        way = indexes.way(ino, size, name);
    }
    let from = match way {
        Way::Places(places) => return at_one_of(dir, name, &places),
        Way::Search(from) => from,
        Way::Build => 0,
    };
    let found = dir.find(name, from, go_on);
    let gone = match &found {
        Ok((_, at)) if *at >= from => at - from,
        Ok((_, at)) => size - from + at,
        Err(e) if *e == Kind::NotFound => size,
        Err(_) => 0,
    };
    let last = found.as_ref().map_or(from, |(_, at)| *at);
    indexes.lock().set(ino, |known| {
        known.last = last;
        known.gone = known.gone.saturating_add(gone);
    });
    found
}

fn at_one_of(dir: &mut Dir<'_>, name: &[u8], places: &[u64]) -> Result<(u32, u64)> {
    dir.read_by_chunks();
    for &at in places {
        if let Some(entry) = dir.entry(at)?
            && entry.is_used()
            && entry.name == name
        {
            return Ok((entry.ino, entry.at));
        }
    }
    Err(Kind::NotFound.into())
}

/// Returns the FNV-1a hash of a name.
fn hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    name.iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(indexes: &mut Indexes, dir: u32) {
        indexes.set(dir, |known| known.index = Some(Index::default()));
    }

    #[test]
    fn names_of_one_hash_are_both_looked_at() {
        let mut indexes = Indexes::new(10_000);
        indexed(&mut indexes, 7);
        indexes.set_room(7, 0, 400);
        // Both names have the same FNV-1a hash.
        let (one, other) = (&b"costarring"[..], &b"liquid"[..]);
        assert_eq!(hash(one), hash(other));
        indexes.add(7, other, 88);
        indexes.add(7, one, 24);
        let places = |indexes: &mut Indexes| match indexes.way(7, 512, one) {
            Way::Places(places) => places,
            _ => panic!("it is indexed"),
        };
        assert_eq!(places(&mut indexes), [24, 88]);
        indexes.remove(7, one, 24);
        assert_eq!(places(&mut indexes), [88]);
        assert!(matches!(
            indexes.way(7, 1024, one),
            Way::Search(_) | Way::Build
        ));
    }

    #[test]
    fn what_is_held_has_a_bound() {
        let mut indexes = Indexes::new(5000);
        for dir in 1..1000_u32 {
            indexed(&mut indexes, dir);
            for at in 0..dir % 97 {
                indexes.add(dir, &at.to_le_bytes(), u64::from(at) * 12);
            }
            indexes.set_room(dir, 0, 12);
            let cost: usize = indexes.dirs.values().map(Known::cost).sum();
            assert_eq!(cost, indexes.held);
            assert!(indexes.held <= 5000);
        }
        assert!(indexes.dirs.contains_key(&999));
        assert!(!indexes.dirs.contains_key(&1));
    }

    #[test]
    fn the_first_chunk_with_room_is_found() {
        let mut indexes = Indexes::new(5000);
        assert_eq!(indexes.room(3, 0, 12), None);
        indexed(&mut indexes, 3);
        for (at, room) in [(0, 12), (512, 40), (1024, 16)] {
            indexes.set_room(3, at, room);
        }
        assert_eq!(indexes.room(3, 1536, 12), Some(Some(0)));
        assert_eq!(indexes.room(3, 1536, 16), Some(Some(512)));
        assert_eq!(indexes.room(3, 1536, 44), Some(None));
        assert_eq!(indexes.room(3, 2048, 12), None);
    }
}

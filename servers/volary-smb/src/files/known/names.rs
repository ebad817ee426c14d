//! [`Names`]: the names in directories, regardless of case. With these, a look-up of a missing name
//! need not read the whole directory.
//!
//! Only a hash of each name is stored, with a secret seed. If the hash is missing, so is the name.
//! If it is present, the directory must be read. So there may be too many hashes, but never too
//! few. A new name is added before its creator gets the answer, even while the directory is still
//! being read.
//!
//! No hash is ever removed, because news of a removal may come late, after the name was created
//! again. The next reading leaves it out. It happens when many more names were added than the last
//! reading found.

use crate::clock::now;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::LazyLock;
use std::time::Instant;
use volary_core::{NodeId, fold_char};

/// The most names of one directory, and of all, at about 16 bytes each.
const DIR_MAX: usize = 1 << 18;
const ALL_MAX: usize = 1 << 19;
/// The most directories.
const DIRS_MAX: usize = 1024;
/// A directory is read again when it has more names than twice those of its last reading, plus
/// this.
const SLACK: usize = 1024;

/// Returns a hash that is the same for names that differ only in case.
pub(crate) fn hash(name: &str) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = SEED.build_hasher();
    for c in name.chars() {
        hasher.write_u32(u32::from(fold_char(c)));
    }
    hasher.finish()
}

/// Returns the hash of a name. Names that are not text match no others, and are not stored.
fn hash_of(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok().map(hash)
}

/// A hasher for numbers that are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Hashes = HashSet<u64, BuildHasherDefault<AsItIs>>;

/// The names of one directory.
struct Dir {
    hashes: Hashes,
    /// When it began to be read.
    since: Instant,
    /// The number of the reading that it comes from.
    reading: u64,
    /// Whether it has been read to its end.
    whole: bool,
    /// The most names before it must be read again.
    most: usize,
    used: u64,
}

/// The names of some directories.
#[derive(Default)]
pub(crate) struct Names(Mutex<State>);

#[derive(Default)]
struct State {
    dirs: HashMap<NodeId, Dir>,
    /// The number of names in all of them.
    names: usize,
    /// Increases with each use and each reading.
    ticks: u64,
}

impl State {
    fn tick(&mut self) -> u64 {
        self.ticks = self.ticks.wrapping_add(1);
        self.ticks
    }

    /// Makes room by dropping the least recently used directories.
    fn trim(&mut self) {
        while self.names > ALL_MAX || self.dirs.len() > DIRS_MAX {
            let oldest = self.dirs.iter().min_by_key(|(_, dir)| dir.used);
            let Some(oldest) = oldest.map(|(node, _)| *node) else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, dir: NodeId) {
        let gone = self.dirs.remove(&dir).map_or(0, |dir| dir.hashes.len());
        self.names = self.names.saturating_sub(gone);
    }
}

impl Names {
    /// Returns whether the directory may have a name with this hash. Returns `None` if that is
    /// unknown, or no longer `fresh`.
    pub(super) fn may_have(
        &self,
        dir: NodeId,
        hash: u64,
        fresh: impl Fn(Instant) -> bool,
    ) -> Option<bool> {
        let mut state = self.0.lock();
        let tick = state.tick();
        let known = state.dirs.get_mut(&dir).filter(|dir| dir.whole)?;
        if !fresh(known.since) {
            state.remove(dir);
            return None;
        }
        known.used = tick;
        Some(known.hashes.contains(&hash))
    }

    /// Begins anew with a directory that is about to be read. Returns `None` if it is already being
    /// read.
    pub(super) fn build(&self, dir: NodeId) -> Option<Build<'_>> {
        let mut state = self.0.lock();
        let reading = state.tick();
        if state.dirs.get(&dir).is_some_and(|known| !known.whole) {
            return None;
        }
        let empty = Dir {
            hashes: Hashes::default(),
            since: now(),
            reading,
            whole: false,
            most: DIR_MAX,
            used: reading,
        };
        state.remove(dir);
        state.dirs.insert(dir, empty);
        state.trim();
        Some(Build {
            names: self,
            dir,
            reading,
            hashes: Hashes::default(),
        })
    }

    pub(super) fn add(&self, dir: NodeId, name: &[u8]) {
        let Some(hash) = hash_of(name) else { return };
        let mut state = self.0.lock();
        let Some(known) = state.dirs.get_mut(&dir) else {
            return;
        };
        let new = known.hashes.insert(hash);
        let too_many = known.hashes.len() > known.most;
        state.names += usize::from(new);
        if too_many {
            state.remove(dir);
        }
        state.trim();
    }

    pub(super) fn forget(&self, dir: NodeId) {
        self.0.lock().remove(dir);
    }

    pub(super) fn forget_all(&self) {
        let mut state = self.0.lock();
        state.dirs = HashMap::new();
        state.names = 0;
    }
}

/// A directory that is being read. If this is dropped before it is [`done`](Self::done), nothing is
/// stored.
pub(crate) struct Build<'a> {
    names: &'a Names,
    dir: NodeId,
    reading: u64,
    hashes: Hashes,
}

impl Build<'_> {
    /// Adds one of its names.
    pub(crate) fn add(&mut self, name: &[u8]) {
        // One more than the limit suffices to detect that there are too many.
        if let Some(hash) = hash_of(name).filter(|_| self.hashes.len() <= DIR_MAX) {
            self.hashes.insert(hash);
        }
    }

    /// Completes the reading.
    pub(crate) fn done(mut self) {
        let hashes = std::mem::take(&mut self.hashes);
        let mut state = self.names.0.lock();
        let dir = state.dirs.get_mut(&self.dir);
        let Some(dir) = dir.filter(|dir| dir.reading == self.reading) else {
            return;
        };
        if hashes.len() > DIR_MAX {
            return;
        }
        let made = dir.hashes.len();
        dir.hashes.extend(hashes);
        dir.whole = true;
        dir.most = DIR_MAX.min(2 * dir.hashes.len() + SLACK);
        let new = dir.hashes.len() - made;
        state.names += new;
        state.trim();
    }
}

impl Drop for Build<'_> {
    fn drop(&mut self) {
        let mut state = self.names.0.lock();
        let unfinished = |dir: &Dir| dir.reading == self.reading && !dir.whole;
        if state.dirs.get(&self.dir).is_some_and(unfinished) {
            state.remove(self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::new(number, 0).unwrap()
    }

    fn has(names: &Names, dir: NodeId, name: &str) -> Option<bool> {
        names.may_have(dir, hash(name), |_| true)
    }

    fn read(names: &Names, dir: NodeId, all: &[&str]) {
        let mut build = names.build(dir).unwrap();
        all.iter().for_each(|name| build.add(name.as_bytes()));
        build.done();
    }

    #[test]
    fn names_are_found_in_any_case_and_followed() {
        let (names, dir) = (Names::default(), node(1));
        assert_eq!(has(&names, dir, "a"), None);
        read(&names, dir, &["Größe", "twin", "TWIN"]);
        assert_eq!(has(&names, dir, "GRÖßE"), Some(true));
        assert_eq!(has(&names, dir, "other"), Some(false));
        names.add(dir, b"Other");
        assert_eq!(has(&names, dir, "oTHER"), Some(true));
        names.forget(dir);
        assert_eq!(has(&names, dir, "twin"), None);
    }

    #[test]
    fn what_changes_while_a_directory_is_read_is_not_lost() {
        let (names, dir) = (Names::default(), node(1));
        let mut build = names.build(dir).unwrap();
        assert!(names.build(dir).is_none(), "another reads it");
        assert_eq!(has(&names, dir, "x"), None, "not read to its end");
        names.add(dir, b"made");
        build.add(b"both");
        names.add(dir, b"both");
        build.done();
        for name in ["made", "both"] {
            assert_eq!(has(&names, dir, name), Some(true), "{name}");
        }
    }

    #[test]
    fn news_of_more_while_a_directory_is_read_makes_the_reading_useless() {
        let (names, dir) = (Names::default(), node(1));
        let build = names.build(dir).unwrap();
        names.forget(dir);
        build.done();
        assert_eq!(has(&names, dir, "x"), None);
        drop(names.build(dir).unwrap());
        assert!(names.0.lock().dirs.is_empty(), "given up");
        read(&names, dir, &["x"]);
        assert_eq!(names.may_have(dir, hash("x"), |_| false), None, "too old");
    }

    #[test]
    fn names_that_come_and_go_do_not_add_up() {
        let (names, dir) = (Names::default(), node(1));
        let mut readings = 0;
        for number in 0..20 * SLACK {
            if has(&names, dir, "x").is_none() {
                read(&names, dir, &["x"]);
                readings += 1;
            }
            names.add(dir, number.to_string().as_bytes());
            assert!(names.0.lock().names <= SLACK + 2, "at {number}");
        }
        assert_eq!(readings, 20);
    }

    #[test]
    fn what_all_directories_are_given_is_bounded() {
        let names = Names::default();
        let dirs = (ALL_MAX / SLACK + 2) as u64;
        for number in 1..=dirs {
            read(&names, node(number), &[]);
        }
        for number in 1..=dirs {
            for name in 0..SLACK {
                names.add(node(number), name.to_string().as_bytes());
            }
        }
        let state = names.0.lock();
        let all: usize = state.dirs.values().map(|dir| dir.hashes.len()).sum();
        assert!(
            all <= ALL_MAX && state.names == all,
            "{all}, {}",
            state.names
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let names = Names::default();
        for number in 1..=DIRS_MAX as u64 + 10 {
            read(&names, node(number), &["x"]);
        }
        assert_eq!(names.0.lock().dirs.len(), DIRS_MAX);
        assert_eq!(has(&names, node(1), "x"), None, "the oldest has gone");
        let mut build = names.build(node(1)).unwrap();
        for number in 0..=DIR_MAX + 5 {
            build.add(number.to_string().as_bytes());
        }
        assert!(build.hashes.len() <= DIR_MAX + 1);
        build.done();
        assert_eq!(has(&names, node(1), "0"), None, "too many");
    }
}

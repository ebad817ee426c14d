//! The order in which renames between two commits write the sectors of directories.
//!
//! A commit first writes all sectors to which renames added an entry. Then it writes `..` of
//! directories that moved, and at last the sectors from which renames removed an entry. So a power
//! cut leaves at least one name. [`Moves`] refuses a rename for which no such order exists; the
//! driver commits and tries again.

use std::collections::HashSet;

/// Sectors of directories that renames have changed since the last commit. A sector is a byte
/// offset or a number, as the driver chooses.
#[derive(Debug, Default)]
pub struct Moves {
    /// Sectors to which an entry was added.
    targets: HashSet<u64>,
    /// Sectors from which an entry was removed.
    sources: HashSet<u64>,
    /// Directories from which an entry was removed.
    left: HashSet<u32>,
    /// Sectors that hold a new name of a directory with a new parent.
    homes: HashSet<u64>,
    /// Sectors that hold `..` of such a directory.
    dots: HashSet<u64>,
}

impl Moves {
    /// Records that a rename adds an entry to the sectors `to` and removes one from the sector
    /// `from` of the directory `dir`. Returns false, and records nothing, if a sector would have to
    /// be written both before and after another.
    pub fn note_rename(&mut self, to: &[u64], from: u64, dir: u32) -> bool {
        let is_one = to.contains(&from);
        let crossed = to.iter().any(|at| self.sources.contains(at))
            || !is_one && self.targets.contains(&from);
        if crossed {
            return false;
        }
        self.targets.extend(to);
        if !is_one {
            self.sources.insert(from);
            self.left.insert(dir);
        }
        true
    }

    /// Records that a directory whose `..` is in the sector `dots` gets a name in the sector
    /// `home`. Returns false, and records nothing, if that name would have to wait for the `..` of
    /// another directory in its own sector.
    pub fn note_parent(&mut self, home: u64, dots: u64) -> bool {
        if self.dots.contains(&home) || self.homes.contains(&dots) {
            return false;
        }
        self.homes.insert(home);
        self.dots.insert(dots);
        true
    }

    /// Returns whether a rename removed an entry from this directory, in a sector that is written
    /// last.
    pub fn has_left(&self, dir: u32) -> bool {
        self.left.contains(&dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_not_written_before_and_after_another() {
        let mut moves = Moves::default();
        assert!(moves.note_rename(&[1], 2, 7));
        assert!(moves.has_left(7) && !moves.has_left(8));
        assert!(!moves.note_rename(&[2], 3, 8), "2 is written last");
        assert!(!moves.note_rename(&[3], 1, 8), "1 is written first");
        assert!(!moves.has_left(8), "a refused rename is not noted");
        assert!(moves.note_rename(&[1, 4], 2, 8));
        assert!(
            moves.note_rename(&[5], 5, 9),
            "within a sector, order does not matter"
        );
        assert!(!moves.has_left(9));
    }

    #[test]
    fn a_name_does_not_wait_for_dots_in_its_own_sector() {
        let mut moves = Moves::default();
        assert!(moves.note_parent(1, 2));
        assert!(!moves.note_parent(2, 3) && !moves.note_parent(3, 1));
        assert!(moves.note_parent(1, 2) && moves.note_parent(3, 4));
    }
}

//! What all changes between two commits share, an *epoch*, and in which stage of the commit
//! each sector is written.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_block::Stage;
use volary_ondisk::NumberMap;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// The stage of directory sectors: when all they lead to is on the disk.
const ENTRIES: Stage = Stage(1);
/// The stage of sectors that a rename takes an entry out of.
const REMOVALS: Stage = Stage(2);

/// What all changes share and a commit has alone.
#[derive(Default)]
pub(crate) struct Epoch {
    /// A directory that is on the disk has grown: its new cluster was zeroed
    /// on the device, and that must be durable before the FAT leads there.
    grew: AtomicBool,
    /// First clusters of directories that were made in this epoch: nothing on
    /// the disk leads there, so that their sectors need no order.
    born: Mutex<NumberMap<()>>,
    /// Sectors that renames of this epoch added to and took from.
    moves: Mutex<Moves>,
}

#[derive(Default)]
struct Moves {
    targets: HashSet<u64>,
    sources: HashSet<u64>,
    /// First clusters of the directories that renames took something out of.
    left: HashSet<u32>,
}

impl Epoch {
    /// Returns whether the directory that starts at this cluster was made in this epoch.
    pub(crate) fn is_born(&self, first_cluster: u32) -> bool {
        self.born.lock().contains_key(&first_cluster.into())
    }

    /// Notes a directory that is made now.
    pub(crate) fn bear(&self, first_cluster: u32) {
        self.born.lock().insert(first_cluster.into(), ());
    }

    /// Returns the stage for entries of the directory that starts at a cluster.
    pub(crate) fn stage(&self, dir: u32) -> Stage {
        match self.is_born(dir) {
            true => Stage::DATA,
            false => ENTRIES,
        }
    }

    /// Returns the stage for removals from a directory that belong to a move.
    pub(crate) fn removal_stage(&self, dir: u32) -> Stage {
        match self.is_born(dir) {
            true => Stage::DATA,
            false => REMOVALS,
        }
    }

    /// Notes that the directory that starts at a cluster has grown: by a cluster that was zeroed
    /// on the device, if the directory is on the disk.
    pub(crate) fn note_grown(&self, dir: u32) {
        if !self.is_born(dir) {
            self.grew.store(true, Ordering::Release);
        }
    }

    /// Returns whether a directory on the disk has grown since this was asked last.
    pub(crate) fn take_grown(&self) -> bool {
        self.grew.swap(false, Ordering::AcqRel)
    }

    /// Notes that a rename adds to sectors `to` and takes from `from`.
    ///
    /// # Errors
    /// `Commit` if a sector would have to come both before and after another.
    pub(crate) fn note_move(&self, to: &[u64], from: &[u64]) -> Step<()> {
        let mut moves = self.moves.lock();
        let late = |s: &u64| !to.contains(s);
        if to.iter().any(|s| moves.sources.contains(s))
            || from
                .iter()
                .filter(|s| late(s))
                .any(|s| moves.targets.contains(s))
        {
            return Err(Stop::Commit);
        }
        moves.targets.extend(to);
        moves.sources.extend(from.iter().copied().filter(late));
        Ok(())
    }

    /// Notes that a rename takes something out of the directory that starts at cluster `dir`.
    pub(crate) fn note_left(&self, dir: u32) {
        self.moves.lock().left.insert(dir);
    }

    /// Sees to it that the directory that starts at cluster `dir` can go: what was in it until this
    /// epoch has a name elsewhere that is durable.
    ///
    /// # Errors
    /// `Commit` if that is not so yet.
    pub(crate) fn check_left(&self, dir: u32) -> Step<()> {
        match self.moves.lock().left.contains(&dir) {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// Begins anew: all is durable.
    pub(crate) fn end(&mut self) {
        self.born.get_mut().clear();
        *self.moves.get_mut() = Moves::default();
    }
}

//! What a commit must know of the changes since the last one, and the stages in which they reach
//! the disk.

use std::collections::{BTreeSet, HashSet};
use volary_block::Stage;
use volary_ondisk::Moves;

/// Pointers in indirect blocks that the disk already points to.
pub(crate) const POINTERS: Stage = Stage(1);
/// Sectors of directories.
pub(crate) const ADDITIONS: Stage = Stage(2);
/// `..` of directories that were moved.
pub(crate) const PARENTS: Stage = Stage(3);
/// Sectors that a rename took an entry out of.
pub(crate) const REMOVALS: Stage = Stage(4);

/// What a commit must know of the changes since the last one.
#[derive(Default)]
pub(crate) struct Epoch {
    /// Sectors of directories that renames changed.
    pub(crate) moves: Moves,
    /// Directories that moved to another parent. Their `..` reaches the disk before their old names
    /// go.
    pub(crate) moved: HashSet<u32>,
    /// Directories that were made.
    pub(crate) born: HashSet<u32>,
    /// Truncated files: the rest of their last block is to be filled with zeros.
    pub(crate) cut: HashSet<u32>,
    /// Clusters of files, by inode and first block, in which a block does not lie behind the one
    /// before it.
    pub(crate) scattered: BTreeSet<(u32, u64)>,
    /// Whether anything was changed.
    pub(crate) is_dirty: bool,
}

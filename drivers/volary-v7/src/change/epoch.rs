//! What a commit must know of the changes since the last, and the stages in which they come to
//! the disk.

use std::collections::HashSet;
use volary_block::Stage;
use volary_ondisk::Moves;

/// Addresses in indirect blocks that the disk leads to.
pub(crate) const POINTERS: Stage = Stage(1);
/// Sectors of directories.
pub(crate) const ADDITIONS: Stage = Stage(2);
/// `..` of directories that were moved.
pub(crate) const PARENTS: Stage = Stage(3);
/// Sectors that a rename took an entry out of.
pub(crate) const REMOVALS: Stage = Stage(4);

/// What a commit must know of the changes since the last.
#[derive(Default)]
pub(crate) struct Epoch {
    /// Sectors of directories that renames changed.
    pub(crate) moves: Moves,
    /// Directories that moved into others: their `..` comes to the disk before their old names go.
    pub(crate) moved: HashSet<u32>,
    /// Directories that were made.
    pub(crate) born: HashSet<u32>,
    /// Files that were cut: what is behind their end becomes zeros.
    pub(crate) cut: HashSet<u32>,
    /// Whether anything was changed.
    pub(crate) is_dirty: bool,
}

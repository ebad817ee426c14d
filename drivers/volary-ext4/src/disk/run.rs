//! Runs of a file's blocks, and the blocks that map them.

/// Where the blocks of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// On the volume, from this block on.
    Data(u64),
    /// On the volume, but never written: they read as zeros.
    Unwritten(u64),
    /// Nowhere.
    Hole,
}

/// Blocks of a file that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first, counted in the file.
    pub(crate) first: u64,
    pub(crate) len: u64,
    pub(crate) spot: Spot,
}

impl Run {
    pub(crate) fn hole(first: u64, end: u64) -> Self {
        Self {
            first,
            len: end.saturating_sub(first),
            spot: Spot::Hole,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.len)
    }

    /// Returns the part of the run in which `from` is, up to `end`.
    pub(crate) fn part(&self, from: u64, end: u64) -> Self {
        let skip = from.saturating_sub(self.first);
        let spot = match self.spot {
            Spot::Data(at) => Spot::Data(at.saturating_add(skip)),
            Spot::Unwritten(at) => Spot::Unwritten(at.saturating_add(skip)),
            Spot::Hole => Spot::Hole,
        };
        Self {
            first: from,
            len: self.end().min(end).saturating_sub(from),
            spot,
        }
    }
}

/// A block that holds the map of a file: a node of its tree, or an indirect block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapBlock {
    pub(crate) block: u64,
    /// The blocks of the file that it maps.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// How many levels are below.
    pub(crate) depth: u16,
}

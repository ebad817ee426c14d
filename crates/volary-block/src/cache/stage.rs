//! Units of the cache, and the stages of writes.

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Bytes of a sector, the unit in which the cache tracks dirty data and stages.
pub const SECTOR: usize = 512;

/// When a write may reach the device, relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// Any time: data that nothing on the disk points to yet, or that may be old or new after a
    /// crash.
    pub const DATA: Self = Self(0);
    /// The last stage. A later one counts as this one.
    pub const LAST: Self = Self(4);

    /// Returns the stage's number. A stage after [`LAST`](Self::LAST) counts as that one.
    pub(super) fn index(self) -> usize {
        usize::from(self.0.min(Self::LAST.0))
    }
}

//! Units of the cache, and when they are written.

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Bytes in the unit of which dirtiness and stage are kept.
pub const SECTOR: usize = 512;

/// When a write may reach the device, relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// Any time: data that nothing on the disk points to as yet, or that may
    /// be old or new after a crash.
    pub const DATA: Self = Self(0);
    /// The last stage. A stage past it counts as this one.
    pub const LAST: Self = Self(4);

    /// Returns the stage's number. A stage past [`LAST`](Self::LAST) counts as that one.
    pub(super) fn index(self) -> usize {
        usize::from(self.0.min(Self::LAST.0))
    }
}

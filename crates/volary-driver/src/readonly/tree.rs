//! The trait of what can tell all its entries at once.

use super::listing::Listing;
use volary_core::{Caps, Result};

/// What can tell all its entries at once.
pub trait Tree: Send + Sync + 'static {
    /// What [`read`](Self::read) finds a file's bytes by: an offset, say.
    type File: Send + Sync + 'static;

    /// Whether all files lie in one piece on the device, uncompressed: then [`place`](Self::place) says where. If some
    /// are packed, it stays `false`.
    const HAS_PLACES: bool = false;

    /// Tells `out` of every entry. Called once, by [`attach`](super::attach).
    ///
    /// # Errors
    /// `Corrupt` for what makes no sense; what `out` answers.
    fn list(&self, out: &mut Listing<Self::File>) -> Result<()>;

    /// Fills `buf` with the file's bytes from `offset` on. All of them lie before the size that the entry told.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns where the file's bytes begin on the device: bulk reads go there in the order of the disk.
    fn place(&self, file: &Self::File) -> Option<u64> {
        let _ = file;
        None
    }

    /// Returns what the format can keep of `most`, which is what can be shown:
    /// `Caps { time_step: 1_000_000_000, ..most.without(Caps::HARD_LINKS) }` of one that has whole seconds, and no
    /// hard links. What it claims beyond `most` does not count. Default: all.
    fn caps(&self, most: Caps) -> Caps {
        most
    }

    /// Returns how large the volume is in bytes, for people who ask.
    fn size(&self) -> u64 {
        0
    }
}

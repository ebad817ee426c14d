//! The trait for trees that can list all entries at once.

use super::listing::Listing;
use volary_core::{Caps, Result};

/// A tree that can list all its entries at once.
pub trait Tree: Send + Sync + 'static {
    /// The key by which [`read`](Self::read) finds a file's bytes, such as an offset.
    type File: Send + Sync + 'static;

    /// Whether every file lies in one piece on the device, uncompressed. Then
    /// [`place`](Self::place) returns its offset. It must be `false` if some files are packed.
    const HAS_PLACES: bool = false;

    /// Passes every entry to `out`. [`attach`](super::attach) calls it once.
    ///
    /// # Errors
    /// `Corrupt` for damage; those of `out`.
    fn list(&self, out: &mut Listing<Self::File>) -> Result<()>;

    /// Fills `buf` with the file's bytes from `offset` on. They lie within the size of its entry.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn read(&self, file: &Self::File, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns the offset on the device at which the file's bytes begin. Bulk reads go there in
    /// device order.
    fn place(&self, file: &Self::File) -> Option<u64> {
        let _ = file;
        None
    }

    /// Returns the abilities that the format has, out of `most`, which this adapter can show. For a
    /// format with whole seconds and no hard links:
    /// `Caps { time_step: 1_000_000_000, ..most.without(Caps::HARD_LINKS) }`. Abilities beyond
    /// `most` are ignored. Default: all.
    fn caps(&self, most: Caps) -> Caps {
        most
    }

    /// Returns the size of the volume in bytes, for `statfs`: of an archive, how long it is.
    /// Default: 0, which stands for the sum of the sizes of its files.
    fn size(&self) -> u64 {
        0
    }
}

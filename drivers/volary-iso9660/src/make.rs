//! What this driver does not do to a volume.

use volary_core::{Error, Kind};

/// The answer to making one.
pub(crate) fn make() -> Error {
    let words = "iso9660 volumes are read here, not made; make one with xorriso or genisoimage";
    Error::note(Kind::Unsupported, words)
}

/// The answer to changing one.
pub(crate) fn change() -> Error {
    Error::note(Kind::Unsupported, "iso9660 volumes take no changes")
}

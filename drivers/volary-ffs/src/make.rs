//! What this driver does not do to a volume.

use volary_core::{Error, Kind};

/// The answer to making one.
pub(crate) fn make() -> Error {
    let words = "ffs volumes are read here, not made; make one with makefs or newfs";
    Error::note(Kind::Unsupported, words)
}

/// The answer to changing one.
pub(crate) fn change() -> Error {
    Error::note(Kind::Unsupported, "ffs volumes take no changes here")
}

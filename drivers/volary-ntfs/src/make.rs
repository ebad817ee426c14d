//! What this driver does not do to a volume yet.

use volary_core::{Error, Kind};

/// Returns the answer to making one.
pub(crate) fn make() -> Error {
    let words = "NTFS volumes are read here, not made; make one with mkntfs";
    Error::note(Kind::Unsupported, words)
}

/// Returns the answer to changing one.
pub(crate) fn change() -> Error {
    let words = "NTFS volumes take no changes here; ntfs-3g and Windows make them";
    Error::note(Kind::Unsupported, words)
}

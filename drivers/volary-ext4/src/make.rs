//! What this driver does not do to a volume yet.

use volary_core::{Error, Kind};

/// The answer to making one.
pub(crate) fn make() -> Error {
    let words = "ext4 volumes are read here, not made; make one with mke2fs";
    Error::note(Kind::Unsupported, words)
}

/// The answer to changing one.
pub(crate) fn change() -> Error {
    let words = "ext4 volumes take no changes here; tune2fs and e2fsck make them";
    Error::note(Kind::Unsupported, words)
}

//! What this driver does not do to a volume.

use volary_core::Error;
use volary_ondisk::refusal::{not_changed, not_made};

/// Returns the refusal to make a volume, and names the programs that can.
pub(crate) fn make() -> Error {
    not_made("ext4", "mke2fs")
}

/// Returns the refusal to change a volume.
pub(crate) fn change() -> Error {
    not_changed("ext4", Some("tune2fs and e2fsck make them"))
}

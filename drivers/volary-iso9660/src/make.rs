//! What this driver does not do to a volume.

use volary_core::Error;
use volary_ondisk::refusal::{not_changed, not_made};

/// Returns the refusal to make a volume, and names the programs that can.
pub(crate) fn make() -> Error {
    not_made("iso9660", "xorriso or genisoimage")
}

/// Returns the refusal to change a volume.
pub(crate) fn change() -> Error {
    not_changed("iso9660", None)
}

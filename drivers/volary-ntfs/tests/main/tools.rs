//! What the format says of volumes.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode};
use volary_ntfs::NTFS;
use volary_testkit::volumes;

/// Findings of a check, as lines.
pub(crate) fn check(dev: &Arc<dyn BlockDevice>) -> Vec<String> {
    let (_, found) = volumes::check(&NTFS, dev.clone(), CheckMode::Look, "").expect("a check");
    found
}

pub(crate) fn dump(dev: &Arc<dyn BlockDevice>, what: &str) -> String {
    volumes::dump(&NTFS, dev, what)
}

/// The map has every byte once, and nothing is lost.
pub(crate) fn check_map(dev: &Arc<dyn BlockDevice>) {
    assert_eq!(volumes::lost_in_map(&NTFS, dev), 0);
}

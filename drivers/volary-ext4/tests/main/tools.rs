//! What the format says of volumes.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode};
use volary_ext4::EXT4;
use volary_testkit::volumes;

/// Findings of a check, as lines.
pub(crate) fn check(dev: &Arc<dyn BlockDevice>) -> Vec<String> {
    let (_, found) = volumes::check(&EXT4, dev.clone(), CheckMode::Look, "").expect("a check");
    found
}

/// Findings but those that every volume in use can have.
pub(crate) fn damage(dev: &Arc<dyn BlockDevice>) -> Vec<String> {
    let notes = ["replay: ", "not-clean: ", "orphan: ", "encrypted: "];
    let mut found = check(dev);
    found.retain(|line| !notes.iter().any(|note| line.starts_with(note)));
    found.retain(|line| !line.contains("the superblock says"));
    found
}

pub(crate) fn dump(dev: &Arc<dyn BlockDevice>, what: &str) -> String {
    volumes::dump(&EXT4, dev, what)
}

/// The map has every byte once.
pub(crate) fn check_map(dev: &Arc<dyn BlockDevice>) {
    volumes::lost_in_map(&EXT4, dev);
}

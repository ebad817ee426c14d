//! What the format says of volumes.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode, Format};
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
    let mut text = String::new();
    let what: Vec<String> = what.split(' ').map(Into::into).collect();
    EXT4.dump(dev.clone(), &what, &mut text)
        .unwrap_or_else(|e| panic!("dump {what:?}: {e}"));
    text
}

/// The map has every byte once.
pub(crate) fn check_map(dev: &Arc<dyn BlockDevice>) {
    for cells in [1, 640] {
        let map = EXT4.map(dev.clone(), cells).expect("a map");
        let all = map.cells.iter();
        let sum: u64 = all
            .map(|c| c.system + c.dir + c.file + c.broken + c.bad + c.free + c.lost)
            .sum();
        assert_eq!(sum, dev.geometry().size, "{cells} cells");
    }
}

//! What the format says of volumes.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode, Format};
use volary_ntfs::NTFS;
use volary_testkit::volumes;

/// Findings of a check, as lines.
pub(crate) fn check(dev: &Arc<dyn BlockDevice>) -> Vec<String> {
    let (_, found) = volumes::check(&NTFS, dev.clone(), CheckMode::Look, "").expect("a check");
    found
}

pub(crate) fn dump(dev: &Arc<dyn BlockDevice>, what: &str) -> String {
    let mut text = String::new();
    let what: Vec<String> = what.splitn(2, ' ').map(Into::into).collect();
    NTFS.dump(dev.clone(), &what, &mut text)
        .unwrap_or_else(|e| panic!("dump {what:?}: {e}"));
    text
}

/// The map has every byte once, and nothing is lost.
pub(crate) fn check_map(dev: &Arc<dyn BlockDevice>) {
    for cells in [1, 640] {
        let map = NTFS.map(dev.clone(), cells).expect("a map");
        let all = map.cells.iter();
        let sum: u64 = all
            .map(|c| c.system + c.dir + c.file + c.broken + c.bad + c.free + c.lost)
            .sum();
        assert_eq!(sum, dev.geometry().size, "{cells} cells");
        assert!(map.cells.iter().all(|cell| cell.lost == 0), "{cells} cells");
    }
}

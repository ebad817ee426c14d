//! How full a volume says that it is.

use crate::suite::Case;
use volary_core::StatFs;

/// Returns what `statfs` tells, which must add up.
#[track_caller]
pub(crate) fn told(c: &Case) -> StatFs {
    let s = c.fs().statfs(&c.cx()).expect("statfs");
    assert!(s.block_size > 0, "no block size: {s:?}");
    assert!(s.size <= i64::MAX as u64, "larger than can be: {s:?}");
    assert!(s.free <= s.size, "more is free than there is: {s:?}");
    assert!(s.available <= s.free, "more is available than free: {s:?}");
    assert!(
        s.nodes_free <= s.nodes,
        "more nodes are free than there are: {s:?}"
    );
    s
}

/// Asserts that a volume counts at least so many bytes, and if it counts nodes so many of them, as
/// in use.
#[track_caller]
pub(crate) fn covers(s: &StatFs, bytes: u64, nodes: u64) {
    if bytes > 0 {
        assert!(
            s.size >= s.block_size.into(),
            "files have content, and the volume is smaller than a block: {s:?}"
        );
    }
    let used = s.size - s.free;
    assert!(
        used >= bytes,
        "{used} bytes in use, and files hold {bytes} at least: {s:?}"
    );
    let used = s.nodes - s.nodes_free;
    assert!(
        s.nodes == 0 || used >= nodes,
        "{used} nodes in use, and there are {nodes}: {s:?}"
    );
}

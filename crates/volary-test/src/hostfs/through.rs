//! The conformance suite through a mount, without the cases that a mount hides.

use crate::{Fresh, Suite};
use std::any::Any;
use std::path::PathBuf;
use volary_core::Caps;

/// Why freed space does not show at once.
const LATER: &str = "the kernel tells of the last close, and of what it forgets, a moment later";

/// Caps of a volume that are not visible through a mount or [`hostfs`](super).
const HIDDEN: u32 = Caps::XATTRS | Caps::EXTENTS | Caps::CHECKS_ACCESS | Caps::SHARED_LOCKS;

/// Returns the part of a volume's caps that is visible through a mount.
pub fn shown(caps: Caps) -> Caps {
    caps.without(HIDDEN)
}

/// Returns a suite on mounts that `mount` makes. `mount` returns the directory, the caps of the
/// volume, and a value that keeps the mount alive until it is dropped.
pub fn through<T: Any + Send + Sync>(
    name: &str,
    mount: impl Fn() -> (PathBuf, Caps, T) + Send + Sync + 'static,
) -> Suite {
    let make = move || {
        let (dir, caps, mount) = mount();
        let caps = shown(caps);
        let fs = super::open(&dir, caps).expect("the mounted directory");
        Fresh::new(fs).keeping(mount)
    };
    excused(Suite::new(name, make))
}

const LEFT_OUT: [(&[&str], &str); 4] = [
    (
        &["the_change_count_grows_with_every_change"],
        "a mount does not give the count",
    ),
    (
        &["keep_answers_invalid_before_exists"],
        "Linux looks at the new name first",
    ),
    (
        &["a_reader_sees_each_write_whole_or_not_at_all"],
        "Linux's page cache takes a write page by page while others read",
    ),
    (
        &[
            "room_comes_back_with_the_last_open",
            "room_comes_back_when_all_is_removed",
            "room_on_a_full_volume_can_be_used_again",
        ],
        LATER,
    ),
];

/// Leaves out the cases that fail because of what a mount or [`hostfs`](super) does in place of the
/// volume.
#[must_use]
pub fn excused(suite: Suite) -> Suite {
    suite.own_clock().leave_out_all(&LEFT_OUT)
}

//! The conformance suite through a mount: what a mount does not show.

use crate::{Fresh, Suite};
use std::any::Any;
use std::path::PathBuf;
use volary_core::Caps;

/// Why room that is given back is not at once seen to be free.
const LATER: &str = "the kernel tells of the last close, and of what it forgets, a moment later";

/// What a mount, or [`hostfs`](super), does not show of a volume.
const HIDDEN: u32 = Caps::XATTRS | Caps::EXTENTS | Caps::CHECKS_ACCESS | Caps::SHARED_LOCKS;

/// Returns what a mount shows of what its volume can do.
pub fn shown(caps: Caps) -> Caps {
    caps.without(HIDDEN)
}

/// Returns the suite on mounts that `mount` makes: each a directory, what its volume can do, and what
/// is to be kept for as long as it is used.
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

/// Excuses a suite for what a mount, or [`hostfs`](super), does in the volume's place.
#[must_use]
pub fn excused(suite: Suite) -> Suite {
    suite.own_clock().leave_out_all(&LEFT_OUT)
}

//! The suite through a FUSE mount.

use super::plain::{LOOKS_FIRST, LeftOut, Plain, volume};
use crate::{Fresh, Suite, hostfs};
use std::path::Path;
use std::sync::Arc;
use volary_core::Caps;
use volary_fuse::{MountOptions, Stop};

/// Returns the suite. If nothing can be mounted here, says so on stdout and returns `None`.
///
/// # Panics
/// If nothing can be mounted and the environment variable `CI` is `true`.
pub(super) fn suite(all: &Plain) -> Option<Suite> {
    if !can_mount() {
        let why = "no /dev/fuse, or no right to mount";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
        println!("skipped: {} through fuse: {why}", all.name);
        return None;
    }
    let make = Arc::clone(&all.make);
    let tells_case = make().fs.caps().has(Caps::CASE_SENSITIVE);
    let mounted = move || {
        let Fresh { fs, keep, .. } = make();
        let volume = volume(fs);
        let caps = hostfs::shown(volume.caps());
        let dir = tempfile::TempDir::new().expect("a directory");
        let mounted = volary_fuse::serve(volume, dir.path(), &MountOptions::default(), Stop::Call);
        let fs = hostfs::open(dir.path(), caps).expect("the mounted directory");
        let mut fresh = Fresh::new(fs).keeping((mounted.expect("a mount"), dir));
        fresh.keep.extend(keep);
        fresh
    };
    let suite = hostfs::excused(all.suite("through fuse", Arc::new(mounted)));
    let suite = suite.leave_out_all(&LEFT_OUT);
    Some(if tells_case {
        suite
    } else {
        suite.leave_out_all(&[SAME])
    })
}

fn can_mount() -> bool {
    Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root()
}

const SAME: LeftOut = (
    &[
        "a_rename_that_changes_case_only_keeps_the_new_case",
        "a_directory_renamed_in_case_only_keeps_what_it_holds",
    ],
    "Linux finds one node under both names and does nothing",
);

const LEFT_OUT: [LeftOut; 4] = [
    LOOKS_FIRST,
    (
        &[
            "a_name_can_be_used_again_at_once",
            "a_new_node_is_none_that_was_there_before",
            "a_replacing_rename_never_leaves_the_name_free",
        ],
        "a mount does not show which of two nodes with one number is meant",
    ),
    (
        &[
            "a_write_past_the_greatest_size_is_too_big",
            "a_write_that_does_not_fit_changes_nothing",
        ],
        "Linux passes a write on page by page, and the first part may fit",
    ),
    (
        &[
            "a_watch_can_be_had_and_ended",
            "a_lock_can_be_taken_and_given_back",
        ],
        "the client for mounts does not do it",
    ),
];

//! The conformance suite through an NFS server, without what the protocol lacks.

use crate::Suite;
use volary_core::Caps;

/// Caps of a volume that are not visible through NFS, or through this client.
const HIDDEN: u32 = Caps::XATTRS
    | Caps::EXTENTS
    | Caps::PREALLOCATE
    | Caps::SWAP
    | Caps::CHECKS_ACCESS
    | Caps::SHARED_LOCKS
    | Caps::WATCH
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::CRASH_SAFE;

/// Returns the part of a volume's caps that is visible through an export.
pub fn shown(caps: Caps) -> Caps {
    caps.without(HIDDEN)
}

/// Adapts a suite to volumes that are seen through [`Remote`](super::Remote).
pub fn through(suite: Suite) -> Suite {
    suite.own_clock().leave_out_all(&LEFT_OUT)
}

const LEFT_OUT: [(&[&str], &str); 6] = [
    (
        &[
            "an_open_file_outlives_its_name",
            "an_open_file_without_a_name_can_be_cut_and_grown",
            "an_open_file_without_a_name_has_no_links",
            "the_name_of_an_open_file_can_be_used_again",
            "a_file_without_a_name_goes_with_its_last_open",
            "room_comes_back_with_the_last_open",
            "a_replaced_file_that_is_open_lives_on",
            "a_replacing_rename_never_leaves_the_name_free",
            "an_open_for_reading_takes_no_writes",
            "files_cannot_be_opened_to_write_without_write",
        ],
        "NFS has no opens: a node goes with its last name",
    ),
    (
        &["a_name_past_the_greatest_length_is_not_there"],
        "what has a name of more than 1024 bytes is no request to our server",
    ),
    (
        &["the_change_count_grows_with_every_change"],
        "NFS does not give the count",
    ),
    (
        &["keep_answers_invalid_before_exists"],
        "this client looks at the new name first",
    ),
    (
        &["a_punched_hole_reads_as_zeros"],
        "NFS does not punch holes",
    ),
    (
        &[
            "linking_a_directory_is_refused",
            "hard_links_are_unsupported",
        ],
        "the session says NotPermitted of directories",
    ),
];

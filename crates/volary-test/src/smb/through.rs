//! The conformance suite through an SMB server, without what the protocol lacks.

use crate::Suite;
use volary_core::Caps;

/// Caps of a volume that are not visible through SMB, or through this client.
const HIDDEN: u32 = Caps::MODES
    | Caps::SYMLINKS
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::XATTRS
    | Caps::CASE_SENSITIVE
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::CRASH_SAFE
    | Caps::EXTENTS
    | Caps::CHECKS_ACCESS
    | Caps::SHARED_LOCKS
    | Caps::WATCH
    | Caps::PREALLOCATE
    | Caps::SWAP
    | Caps::ANY_NAME;

/// Returns the part of a volume's caps that is visible through a share.
pub fn shown(caps: Caps) -> Caps {
    caps.without(HIDDEN)
}

/// Adapts a suite to volumes that are seen through [`Remote`](super::Remote).
pub fn through(suite: Suite) -> Suite {
    suite.own_clock().leave_out_all(&LEFT_OUT)
}

const LEFT_OUT: [(&[&str], &str); 9] = [
    (
        &[
            "an_open_file_outlives_its_name",
            "an_open_file_without_a_name_can_be_cut_and_grown",
            "an_open_file_without_a_name_has_no_links",
            "the_name_of_an_open_file_can_be_used_again",
            "a_file_without_a_name_goes_with_its_last_open",
        ],
        "in SMB a name stays until the last open ends",
    ),
    (
        &[
            "a_replaced_file_that_is_open_lives_on",
            "a_replacing_rename_never_leaves_the_name_free",
        ],
        "in SMB a file that is open is not replaced",
    ),
    (
        &[
            "a_file_does_not_replace_a_directory",
            "a_directory_does_not_replace_a_file",
            "a_directory_replaces_an_empty_directory",
            "a_directory_does_not_replace_one_with_entries",
            "a_directory_does_not_replace_one_that_holds_it",
        ],
        "SMB denies whatever replaces a directory, or is one and replaces",
    ),
    (
        &[
            "a_directory_does_not_go_into_itself",
            "two_directories_can_take_turns_inside_each_other",
            "keep_answers_invalid_before_exists",
            "a_name_past_the_greatest_length_is_refused",
            "a_name_that_the_format_cannot_keep_is_invalid",
            "a_size_past_the_greatest_is_too_big",
            "setattr_changes_all_or_nothing",
            "a_write_past_the_greatest_size_is_too_big",
            "an_append_past_the_greatest_size_is_too_big",
        ],
        "it is refused, by a status that does not say which of several kinds it is",
    ),
    (
        &["fsync_keeps_content_and_size"],
        "SMB flushes what is open for writing, and so no directory",
    ),
    (
        &["an_open_for_reading_cannot_be_written"],
        "SMB says that the open has no right to write, whatever the volume takes",
    ),
    (
        &["the_change_count_grows_with_every_change"],
        "SMB does not give the count",
    ),
    (
        &[
            "a_name_can_be_used_again_at_once",
            "a_new_node_is_none_that_was_there_before",
        ],
        "SMB does not show which of two nodes with one number is meant",
    ),
    (
        &["a_punched_hole_reads_as_zeros"],
        "this client does not punch holes",
    ),
];

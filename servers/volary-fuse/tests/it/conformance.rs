//! The conformance suite, through a mount.

use crate::mount::{Mount, can_mount};
use volary_core::Caps;
use volary_fuse::{Checks, MountOptions};
use volary_mem::MemOptions;
use volary_testkit::{Suite, hostfs};

/// Why a number that is used again is not told from the one before.
const NUMBERS: &str = "a mount does not show which of two nodes with one number is meant";

fn suite(name: &str, mem: fn() -> MemOptions, options: &MountOptions) -> Suite {
    let options = options.clone();
    suite_on(name, move || Mount::of(mem(), &options).unwrap())
}

fn suite_on(name: &str, mount: impl Fn() -> Mount + Send + Sync + 'static) -> Suite {
    hostfs::through(name, move || {
        let mount = mount();
        (mount.mounted.path().to_owned(), mount.volume.caps(), mount)
    })
}

#[test]
fn a_mounted_volume_keeps_its_word() {
    if !can_mount() {
        return;
    }
    suite(
        "mem through fuse",
        MemOptions::default,
        &MountOptions::default(),
    )
    .run();
}

#[test]
fn a_mount_that_gathers_writes_keeps_its_word() {
    if !can_mount() {
        return;
    }
    let options = MountOptions {
        write_back: Some(true),
        ..MountOptions::default()
    };
    suite(
        "mem through fuse, written back",
        MemOptions::default,
        &options,
    )
    .run();
}

#[test]
fn a_mount_whose_session_checks_access_keeps_its_word() {
    if !can_mount() {
        return;
    }
    let options = MountOptions {
        checks: Checks::Session,
        ..MountOptions::default()
    };
    suite(
        "mem through fuse, checked by the session",
        MemOptions::default,
        &options,
    )
    .run();
}

#[test]
fn a_volume_that_does_not_tell_case_keeps_its_word() {
    if !can_mount() {
        return;
    }
    let mem = || {
        let mut mem = MemOptions::default();
        mem.caps = mem
            .caps
            .without(Caps::CASE_SENSITIVE | Caps::HARD_LINKS | Caps::SYMLINKS);
        mem
    };
    let same = "Linux finds one node under both names and does nothing";
    suite(
        "mem without case through fuse",
        mem,
        &MountOptions::default(),
    )
    .leave_out("a_rename_that_changes_case_only_keeps_the_new_case", same)
    .leave_out("a_directory_renamed_in_case_only_keeps_what_it_holds", same)
    .run();
}

#[test]
fn a_mounted_fat_volume_keeps_its_word() {
    if !can_mount() {
        return;
    }
    let mount = || Mount::of_fat(40 << 20, &MountOptions::default()).unwrap();
    let same = "Linux finds one node under both names and does nothing";
    suite_on("fat32 through fuse", mount)
        .leave_out("a_name_can_be_used_again_at_once", NUMBERS)
        .leave_out("a_new_node_is_none_that_was_there_before", NUMBERS)
        .leave_out("a_replacing_rename_never_leaves_the_name_free", NUMBERS)
        .leave_out("a_rename_that_changes_case_only_keeps_the_new_case", same)
        .leave_out("a_directory_renamed_in_case_only_keeps_what_it_holds", same)
        .run();
}

/// Why room is not looked at.
const SHARED: &str = "others write to the same file system";
/// Why an entry may be given twice.
const ONCE_MORE: &str = "tmpfs gives an entry once more when the one after it was renamed";
/// Why what the volume claims is not asked for.
const CLIENT: &str = "the client that the suite has for mounts does not do it";

#[test]
fn a_mounted_directory_of_the_host_keeps_its_word() {
    if !can_mount() {
        return;
    }
    for by_handle in [true, false] {
        let mount = move || Mount::of_host(by_handle, &MountOptions::default()).unwrap();
        let mut suite = suite_on("host through fuse", mount);
        for (case, why) in [
            ("a_watch_can_be_had_and_ended", CLIENT),
            ("a_lock_can_be_taken_and_given_back", CLIENT),
            ("statfs_notices_what_is_written_and_removed", SHARED),
            ("a_new_node_is_none_that_was_there_before", NUMBERS),
            (
                "what_stays_is_given_once_while_others_are_renamed",
                ONCE_MORE,
            ),
        ] {
            suite = suite.leave_out(case, why);
        }
        suite.run();
    }
}

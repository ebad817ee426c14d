//! The conformance suite, through the server.

use crate::served::{Served, config, now};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tempfile::TempDir;
use volary_block::MemDevice;
use volary_core::{Attach, Caps, Cred, Format, Fs, Make};
use volary_fat::FAT;
use volary_host::HostOptions;
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};
use volary_smb::User;
use volary_testkit::smb::{Client, Remote};
use volary_testkit::{Fresh, Suite};

/// What SMB, or this client of it, does not show of a volume.
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

/// A share of it, served for one case.
fn served(fs: Fs) -> Fresh {
    let mut config = config();
    config.users = vec![User::with_password("tester", "pass", Cred::root())];
    let caps = fs.caps().without(HIDDEN);
    config.shares[0].volume = Volume::new(fs, VolumeOptions::new("share", now));
    let served = Served::new(config);
    let address = (Ipv4Addr::LOCALHOST, served.port).into();
    let client = Client::connect(address, ("tester", "pass"), "share", [7; 16]);
    let (client, _) = client.expect("a client");
    Fresh::new(Arc::new(Remote::new(client, caps))).keeping(served)
}

fn suite(name: &str, make: impl Fn() -> Fresh + 'static) -> Suite {
    let suite = Suite::new(name, make).own_clock();
    let leave_out = |suite, (cases, why): &(&[&'static str], &'static str)| {
        let leave_one = |suite: Suite, case: &&'static str| suite.leave_out(case, why);
        cases.iter().fold(suite, leave_one)
    };
    LEFT_OUT.iter().fold(suite, leave_out)
}

const LEFT_OUT: [(&[&str], &str); 8] = [
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

#[test]
fn a_volume_in_memory_keeps_its_word() {
    suite("mem through smb", || {
        served(Mem::attach(MemOptions::default(), now()).expect("a volume"))
    })
    .run();
}

#[test]
fn a_fat_volume_keeps_its_word() {
    suite("fat through smb", || {
        let dev = Arc::new(MemDevice::new(64 << 20));
        let make = Make {
            now: now(),
            ..Make::default()
        };
        FAT.make(dev.clone(), "fat32", &make).expect("a volume");
        served(FAT.attach(dev, &Attach::default()).expect("a volume"))
    })
    .run();
}

#[test]
fn a_directory_of_the_host_keeps_its_word() {
    suite("host through smb", || {
        let dir = TempDir::new().expect("a directory");
        let fs = volary_host::attach(dir.path(), &HostOptions::default());
        served(fs.expect("a volume")).keeping(dir)
    })
    .leave_out("statfs_notices_what_is_written_and_removed", OTHERS)
    .leave_out("room_comes_back_with_the_last_open", OTHERS)
    .leave_out("room_comes_back_when_all_is_removed", OTHERS)
    .run();
}

const OTHERS: &str = "others write to the file system meanwhile";

//! The conformance suite, through the server.

use crate::remote::Remote;
use crate::served::{Served, export, fat, fat_device, options, volume};
use std::sync::Arc;
use volary_core::{Caps, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::Volume;
use volary_testkit::{Fresh, Suite};

/// What NFS does not show of a volume.
const HIDDEN: u32 = Caps::XATTRS
    | Caps::EXTENTS
    | Caps::PREALLOCATE
    | Caps::SWAP
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::CRASH_SAFE;

fn suite(name: &str, volume: impl Fn() -> Arc<Volume> + 'static) -> Suite {
    let make = move || {
        let served = Served::of(volume(), &export(), &options(1));
        let caps = served.volume.caps().without(HIDDEN);
        let remote = Remote::new(served.client(), caps);
        Fresh::new(Arc::new(remote)).keeping(served)
    };
    let opens = [
        "an_open_file_outlives_its_name",
        "an_open_file_without_a_name_can_be_cut_and_grown",
        "an_open_file_without_a_name_has_no_links",
        "the_name_of_an_open_file_can_be_used_again",
        "a_file_without_a_name_goes_with_its_last_open",
        "room_comes_back_with_the_last_open",
        "a_replaced_file_that_is_open_lives_on",
        "a_replacing_rename_never_leaves_the_name_free",
    ];
    let mut suite = Suite::new(name, make).own_clock();
    for case in opens {
        suite = suite.leave_out(case, "NFS has no opens: a node goes with its last name");
    }
    suite
        .leave_out(
            "the_change_count_grows_with_every_change",
            "NFS does not give the count",
        )
        .leave_out(
            "keep_answers_invalid_before_exists",
            "this client looks at the new name first",
        )
        .leave_out("a_punched_hole_reads_as_zeros", "NFS does not punch holes")
        .leave_out("linking_a_directory_is_refused", LINKS)
        .leave_out("hard_links_are_unsupported", LINKS)
}

const LINKS: &str = "the session says NotPermitted of directories";

#[test]
fn a_volume_in_memory_keeps_its_word() {
    let mem = || volume(Mem::attach(MemOptions::default(), Time::EPOCH).unwrap());
    suite("mem through nfs", mem).run();
}

#[test]
fn a_fat_volume_keeps_its_word() {
    suite("fat through nfs", || fat(fat_device(64 << 20))).run();
}

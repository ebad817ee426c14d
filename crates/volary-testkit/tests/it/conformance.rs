//! The conformance suite on the model, in many shapes, and on a directory of
//! the host.

use volary_core::{Caps, Fs, Time};
use volary_mem::{Mem, MemOptions};
use volary_testkit::{Fresh, Suite, hostfs};

pub(crate) fn model(options: MemOptions) -> Fs {
    Mem::attach(options, Time::from_secs(1_700_000_000)).expect("an in-memory volume")
}

/// Returns the model without some abilities, and small enough to be filled.
pub(crate) fn lacking(bits: u32) -> MemOptions {
    let all = MemOptions::sized(5 << 20);
    MemOptions {
        caps: all.caps.without(bits),
        ..all
    }
}

#[test]
fn the_model_conforms_with_every_ability() {
    Suite::new("mem", || model(lacking(0))).run();
}

#[test]
fn the_model_conforms_without_any_one_ability() {
    for (name, bits) in [
        ("MODES", Caps::MODES),
        ("SYMLINKS", Caps::SYMLINKS),
        ("HARD_LINKS", Caps::HARD_LINKS),
        ("DEVICES", Caps::DEVICES),
        ("XATTRS", Caps::XATTRS),
        ("HOLES", Caps::HOLES),
        ("PREALLOCATE", Caps::PREALLOCATE),
        ("SWAP", Caps::SWAP),
        ("ANY_NAME", Caps::ANY_NAME),
        ("CASE_SENSITIVE", Caps::CASE_SENSITIVE),
        ("CASE_KEEPING", Caps::CASE_SENSITIVE | Caps::CASE_KEEPING),
        ("WRITE", Caps::WRITE),
    ] {
        Suite::new(format!("mem without {name}"), move || model(lacking(bits))).run();
    }
}

#[test]
fn the_model_conforms_in_the_shape_of_fat() {
    Suite::new("mem like FAT", || model(like_fat())).run();
}

/// Returns what a FAT volume without the UNIX extension promises.
fn like_fat() -> MemOptions {
    let mut options = lacking(
        Caps::MODES
            | Caps::SYMLINKS
            | Caps::HARD_LINKS
            | Caps::DEVICES
            | Caps::XATTRS
            | Caps::HOLES
            | Caps::CASE_SENSITIVE
            | Caps::ANY_NAME,
    );
    options.caps.size_max = u64::from(u32::MAX);
    options.caps.time_step = 2_000_000_000;
    options
}

pub(crate) fn host_directory() -> Fresh {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let path = dir.path().to_path_buf();
    let open = move || hostfs::open(&path, hostfs::unix_caps()).expect("the directory");
    Fresh::new(open()).reattach(open).keeping(dir)
}

#[test]
fn a_directory_of_the_host_conforms() {
    let mut suite = Suite::new("host directory", host_directory).own_clock();
    for case in [
        "statfs_notices_what_is_written_and_removed",
        "room_comes_back_with_the_last_open",
        "room_comes_back_when_all_is_removed",
        "a_file_open_and_without_a_name_is_gone_after_reattaching",
    ] {
        suite = suite.leave_out(case, "the host's room is shared with others");
    }
    suite
        .leave_out(
            "the_change_count_grows_with_every_change",
            "the host does not give the count",
        )
        .leave_out(
            "a_reader_sees_each_write_whole_or_not_at_all",
            "Linux's page cache takes a write page by page while others read",
        )
        .leave_out(
            "what_stays_is_given_once_while_others_are_renamed",
            "Linux's tmpfs gives some twice",
        )
        .run();
}

//! The conformance suite, in each way in which nodes are found again.

use crate::own::{Own, can_mount};
use std::path::Path;
use tempfile::TempDir;
use volary_host::HostOptions;
use volary_testkit::{Fresh, Suite};

fn fresh(path: &Path, options: &HostOptions) -> Fresh {
    let attach = |path: &Path, options: &HostOptions| {
        volary_host::attach(path, options).expect("the directory")
    };
    let read_only = HostOptions {
        read_only: true,
        ..options.clone()
    };
    let options = options.clone();
    let (again, once_more) = (path.to_owned(), path.to_owned());
    Fresh::new(attach(path, &options))
        .reattach(move || attach(&again, &options))
        .read_only(move || attach(&once_more, &read_only))
}

/// Why room is looked at on file systems of our own only.
const SHARED: &str = "others write to the file system meanwhile";

/// Why an ext4 that is full says that it is not quite.
const RESERVE: &str = "ext4 keeps more than a MiB for itself";
/// Why a write without room is not as if it never was.
const HALF: &str = "Linux writes what there is room for, and moves the times";

/// In a directory of what `TMPDIR` is on, and on file systems of our own.
fn run(name: &str, options: &HostOptions, kinds: &[&'static str]) {
    let whose = options.clone();
    let make = move || {
        let dir = TempDir::new().expect("a directory");
        fresh(dir.path(), &whose).keeping(dir)
    };
    let mut shared = suite(&format!("host {name}"), make);
    for case in [
        "statfs_notices_what_is_written_and_removed",
        "room_comes_back_with_the_last_open",
        "room_comes_back_when_all_is_removed",
        "a_file_open_and_without_a_name_is_gone_after_reattaching",
    ] {
        shared = shared.leave_out(case, SHARED);
    }
    shared.run();
    if !can_mount() {
        return;
    }
    for &kind in kinds {
        let whose = options.clone();
        let make = move || {
            let own = Own::new(kind);
            fresh(own.path(), &whose).keeping(own)
        };
        let mut own = suite(&format!("host {name}, all of {kind}"), make);
        if kind == "ext4" {
            own = own
                .leave_out("a_full_volume_says_so_and_keeps_what_it_has", RESERVE)
                .leave_out("a_write_that_does_not_fit_changes_nothing", HALF);
        }
        own.run();
    }
}

fn suite(name: &str, make: impl Fn() -> Fresh + 'static) -> Suite {
    let mut suite = Suite::new(name, make).own_clock().leave_out(
        "a_reader_sees_each_write_whole_or_not_at_all",
        "Linux's page cache takes a write page by page while others read",
    );
    if !rustix::process::geteuid().is_root() {
        for case in [
            "owner_and_mode_come_back",
            "create_open_leaves_attributes_alone",
            "fifos_sockets_and_devices_are_kept",
        ] {
            suite = suite.leave_out(case, "to give files away and to make devices takes root");
        }
    }
    suite
}

#[test]
fn a_directory_keeps_its_word_by_handles() {
    run("by handles", &HostOptions::default(), &["tmpfs", "ext4"]);
}

#[test]
fn a_directory_keeps_its_word_by_descriptors() {
    let options = HostOptions {
        by_handle: false,
        ..HostOptions::default()
    };
    run("by descriptors", &options, &["tmpfs"]);
}

#[test]
fn a_directory_keeps_its_word_with_hardly_any_descriptors() {
    for by_handle in [true, false] {
        let options = HostOptions {
            by_handle,
            descriptors_max: Some(1),
            ..HostOptions::default()
        };
        run("by few descriptors", &options, &[]);
    }
}

#[test]
fn a_directory_keeps_its_word_when_it_remembers_hardly_anything() {
    let options = HostOptions {
        nodes_max: 1,
        descriptors_max: Some(1),
        ..HostOptions::default()
    };
    run("with a short memory", &options, &[]);
}

//! The conformance suite, in each way in which nodes are found again.

use crate::fresh::{fresh, suite};
use tempfile::TempDir;
use volary_host::HostOptions;

/// Why room is not looked at here.
const SHARED: &str = "others write to the file system meanwhile";

/// In a directory of what `TMPDIR` is on.
fn run(name: &str, options: &HostOptions) {
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
}

#[test]
fn a_directory_keeps_its_word_by_handles() {
    run("by handles", &HostOptions::default());
}

#[test]
fn a_directory_keeps_its_word_by_descriptors() {
    let options = HostOptions {
        by_handle: false,
        ..HostOptions::default()
    };
    run("by descriptors", &options);
}

#[test]
fn a_directory_keeps_its_word_with_hardly_any_descriptors() {
    for by_handle in [true, false] {
        let options = HostOptions {
            by_handle,
            descriptors_max: Some(1),
            ..HostOptions::default()
        };
        run("by few descriptors", &options);
    }
}

#[test]
fn a_directory_keeps_its_word_when_it_remembers_hardly_anything() {
    let options = HostOptions {
        nodes_max: 1,
        descriptors_max: Some(1),
        ..HostOptions::default()
    };
    run("with a short memory", &options);
}

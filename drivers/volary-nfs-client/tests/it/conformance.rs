//! The conformance suite, through the server.

use crate::served::{Served, attach_fat, fat};
use std::time::Duration;
use tempfile::TempDir;
use volary_core::Fs;
use volary_nfs_client::NfsOptions;
use volary_testkit::{Fresh, Suite};

fn fresh(served: Served, options: &NfsOptions) -> Fresh {
    let attach = |served: &Served, options: &NfsOptions| -> Fs {
        served.attach(options).expect("the export")
    };
    Fresh::new(attach(&served, options)).keeping(served)
}

pub(crate) fn suite(name: &str, make: impl Fn() -> Fresh + Send + Sync + 'static) -> Suite {
    Suite::new(name, make)
        .own_clock()
        .leave_out("a_punched_hole_reads_as_zeros", "NFS does not punch holes")
        .leave_out(
            "an_open_for_reading_takes_no_writes",
            "NFS has no opens: the session sees to it",
        )
        .leave_out("fifos_sockets_and_devices_are_kept", DEVICES)
        .leave_out("mknod_over_what_is_there_is_refused", DEVICES)
}

const DEVICES: &str = "our server makes fifos and sockets, but no devices";
/// On a directory of the host, room is not looked at.
pub(crate) fn without_room(suite: Suite) -> Suite {
    let cases = [
        "statfs_notices_what_is_written_and_removed",
        "room_comes_back_with_the_last_open",
        "room_comes_back_when_all_is_removed",
    ];
    cases.into_iter().fold(suite, |suite, case| {
        suite.leave_out(case, "others write to the file system meanwhile")
    })
}

#[test]
fn a_volume_in_memory_keeps_its_word() {
    suite("mem through nfs", || {
        fresh(Served::mem(), &NfsOptions::default())
    })
    .run();
}

/// The client finds one node under both names, which is a rename all the same.
#[test]
fn where_case_is_folded_a_rename_changes_the_case_alone() {
    for case in [
        "a_rename_that_changes_case_only_keeps_the_new_case",
        "a_directory_renamed_in_case_only_keeps_what_it_holds",
        "rename_replaces_a_name_in_other_case",
    ] {
        let suite = suite("fat through nfs", || {
            let served = Served::of(attach_fat(&fat()));
            fresh(served, &NfsOptions::default())
        });
        let report = suite.only(case).report();
        assert!(report.held() && report.passed == [case], "{report}");
    }
}

mod suites {
    //! Some minutes on a slow machine: with `VOLARY_SUITES=1` only.

    use super::*;

    fn asked_for() -> bool {
        let is_asked_for = std::env::var_os("VOLARY_SUITES").is_some();
        if !is_asked_for {
            println!("skipped: without VOLARY_SUITES=1");
        }
        is_asked_for
    }

    #[test]
    fn a_directory_of_the_host_keeps_its_word() {
        if !asked_for() {
            return;
        }
        let suite = suite("host through nfs", || {
            let dir = TempDir::new().expect("a directory");
            fresh(Served::host(dir.path()), &NfsOptions::default()).keeping(dir)
        });
        without_room(suite).run();
    }

    #[test]
    fn a_volume_that_is_written_through_keeps_its_word() {
        if !asked_for() {
            return;
        }
        // Every write is a call, nothing is remembered, and no room is to be had.
        suite("mem through nfs, sync", || {
            let options = NfsOptions {
                sync: true,
                cache: Duration::ZERO,
                memory: 0,
                connections: 1,
                ..NfsOptions::default()
            };
            fresh(Served::mem(), &options)
        })
        .run();
    }
}

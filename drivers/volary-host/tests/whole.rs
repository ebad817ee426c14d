//! The conformance suite on whole file systems, where room is looked at too. Alone
//! in its process: what other tests start would have our descriptors for a moment,
//! and keep the room of what is removed.

#[path = "it/fresh.rs"]
mod fresh;
#[path = "it/own.rs"]
mod own;

use own::{Own, can_mount};
use volary_host::HostOptions;

/// Why an ext4 that is full says that it is not quite.
const RESERVE: &str = "ext4 keeps more than a MiB for itself";
/// Why a write without room is not as if it never was.
const HALF: &str = "Linux writes what there is room for, and moves the times";

#[test]
fn whole_file_systems_keep_their_word() {
    if !can_mount() {
        return;
    }
    for (kind, by_handle) in [("tmpfs", true), ("tmpfs", false), ("ext4", true)] {
        let options = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        let make = move || {
            let own = Own::new(kind);
            fresh::fresh(own.path(), &options).keeping(own)
        };
        let name = format!("all of {kind}, by handles: {by_handle}");
        let mut suite = fresh::suite(&name, make);
        if kind == "ext4" {
            suite = suite
                .leave_out("a_full_volume_says_so_and_keeps_what_it_has", RESERVE)
                .leave_out("a_write_that_does_not_fit_changes_nothing", HALF);
        }
        suite.run();
    }
}

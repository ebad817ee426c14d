//! The Seventh Edition and System V: recovery is `fsck -p`, then attaching.

use crate::plans::{count, cuts_of_the_check, explore, plan, torture};
use volary::torture::{Depth, Plan};

const ROWS: [&str; 2] = ["v7", "sysv"];

#[test]
fn pairs_of_operations_on_each_kind() {
    for name in ROWS {
        let pairs = Some((0, 16));
        torture(name, &Plan { pairs, ..plan() });
    }
    let pairs = Some((3, 24));
    torture("v7-sync", &Plan { pairs, ..plan() });
}

#[test]
fn cuts_of_the_check_leave_what_the_check_mends() {
    for name in ROWS {
        let plan = Plan {
            pairs: Some((0, 120)),
            depth: cuts_of_the_check(),
            ..plan()
        };
        torture(name, &plan);
    }
}

#[test]
fn random_scripts_on_each_kind() {
    for name in ROWS {
        let random = count(4).div_ceil(4);
        torture(name, &Plan { random, ..plan() });
    }
}

/// The first one's new name is in a sector that waits for the second one's `..`.
#[test]
fn a_directory_that_moves_with_one_that_moved_into_it_has_one_name() {
    let script = "rename /full/2 /e/f; mkdir /full/c; rename /e/f /full/3; rename /e /d/x; \
        create /d/x/g; rename /d /full/c/x; rename /full/c/x/x/g /full/8";
    for name in ROWS {
        explore(name, Depth::default(), script);
    }
}

/// Their inodes come to the disk in any order: the directory's may be there, and theirs not.
#[test]
fn a_new_directory_without_a_name_may_have_entries_that_lead_to_nothing() {
    let long = "another-name-with-a-rather-long-end-in-five-slots-of-a-directory.data";
    let script = format!(
        "create /B.TXT; mkdir /d/{long}; create /full/{long}; create /d/{long}/x; create /e/c; \
         create /a-long-name-that-takes-three-slots; mkdir /c; create /c/B.TXT; create /c/c; sync"
    );
    for name in ROWS {
        explore(name, plan().depth, &script);
    }
}

/// The size came after the sector, in which the new name stood behind the old end.
#[test]
fn a_rename_by_which_a_directory_grows_keeps_the_file() {
    for name in ["v7", "v7-sync", "sysv"] {
        explore(
            name,
            plan().depth,
            "rename /a /new; sync; create /new; sync",
        );
    }
}

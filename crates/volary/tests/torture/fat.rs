//! FAT: recovery is `fsck -p`, then attaching.

use crate::plans::{count, cuts_of_the_check, explore, plan, torture};
use volary::torture::{Depth, Plan};

#[test]
fn all_pairs_of_operations_on_each_kind() {
    for name in ["fat12", "fat16", "fat32"] {
        let pairs = Some((0, 1));
        torture(name, &Plan { pairs, ..plan() });
    }
}

#[test]
fn cuts_of_the_check_leave_what_the_check_mends() {
    for name in ["fat12", "fat16", "fat32"] {
        let plan = Plan {
            pairs: Some((0, 7)),
            depth: cuts_of_the_check(),
            ..plan()
        };
        torture(name, &plan);
    }
}

#[test]
fn random_scripts_on_each_kind() {
    for name in ["fat12", "fat12-keeping", "fat16", "fat32", "fat32-keeping"] {
        let random = count(4);
        torture(name, &Plan { random, ..plan() });
    }
}

/// The entry of the new directory was on its way as late as the loss of the old name.
#[test]
fn what_moves_into_a_new_directory_is_not_lost_with_it() {
    let before = "create /full/a-long-name-that-takes-three-slots; mkdir /full/B.TXT; rename /full/B.TXT /d/B.TXT; \
        mkdir /full/Mixed.Case; create /d/B.TXT/Mixed.Case";
    for moved in [
        "rename /full/5 /full/Mixed.Case/c",
        "create /full/Mixed.Case/c; rename /full/5 /full/Mixed.Case/c",
    ] {
        let script = format!("{before}; {moved}; fsync /d/B.TXT/Mixed.Case");
        for name in ["fat12", "fat16", "fat32"] {
            explore(name, Depth::default(), &script);
        }
    }
}

/// A directory went as early as what had been moved out of it came to its new place.
#[test]
fn what_moves_out_of_a_directory_is_not_lost_when_that_goes() {
    let before = "rename /d/b /full/7; create /d/Mixed.Case; write /d/Mixed.Case 0 184; fsync /d; \
        rename /d/Mixed.Case /full/c";
    for gone in ["rmdir /d", "rename /e /d"] {
        let script = format!("{before}; {gone}; sync");
        for name in [
            "fat12", "fat16", "fat32", "ffs1", "ffs1-old", "ffs2", "v7", "sysv", "cedar",
        ] {
            explore(name, Depth::default(), &script);
        }
    }
}

/// Its `..` led to where it had been for a moment, and its name was still the old one.
#[test]
fn a_directory_that_moves_and_goes_has_no_wrong_parent() {
    let long = "another-name-with-a-rather-long-end-in-five-slots-of-a-directory.data";
    let script = format!(
        "rename /full/{long} /full/c; create /e/x; mkdir /full/{long}; fsync /full/1; \
         mkdir /full/{long}/c; rename /full/{long}/c /full/{long}/x; \
         rename /full/{long}/x /d/Mixed.Case; rmdir /d/Mixed.Case; fsync /e/x"
    );
    for name in ["fat12", "fat32", "ffs1", "ffs1-old", "ffs2", "v7", "sysv"] {
        explore(name, Depth::default(), &script);
    }
}

/// Explores a script on fat12, two cuts of the check included.
fn explore_twice(script: &str) {
    let depth = Depth {
        nested: 2,
        ..Depth::default()
    };
    explore("fat12", depth, script);
}

/// What stands after the end was made when the sector before it, as the disk has it, was of the past already.
#[test]
fn a_sector_without_the_one_before_it_shows_no_name_twice() {
    explore_twice(
        "rename /full/8 /full/5; create /full/Mixed.Case; rename /full/Mixed.Case /x; \
         create /full/a-long-name-that-takes-three-slots; create /full/Mixed.Case; sync",
    );
}

/// By the old entry the chain is too long, by the one after the end it is not.
#[test]
fn what_an_entry_after_the_end_needs_is_not_freed() {
    explore_twice(
        "mkdir /full/x; truncate /full/2 160; fsync /full/x; truncate /full/2 796; \
         rename /full/2 /full/a-long-name-that-takes-three-slots",
    );
}

/// Both names of a directory on the way are no reason to go by the second FAT, which does not know the new one's place.
#[test]
fn both_names_of_a_rename_speak_for_no_other_fat() {
    explore_twice("rename /d /full/a-long-name-that-takes-three-slots; sync");
}

//! FFS: recovery is `fsck -p`, then attaching.

use crate::plans::{bounds, count, cuts_of_the_check, explore, plan, torture};
use volary::torture::{Depth, Plan};

const ROWS: [&str; 3] = ["ffs1", "ffs1-old", "ffs2"];

#[test]
fn pairs_of_operations_on_each_kind() {
    for name in ROWS {
        let pairs = Some((0, 16));
        torture(name, &Plan { pairs, ..plan() });
    }
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

/// What is written at once is there after each operation; what users have taken is counted
/// anew, and check hashes are made anew, where a power cut left them behind.
#[test]
fn pairs_of_operations_in_order_with_quotas_and_with_hashes() {
    for (name, part) in [
        ("ffs1-sync", 3),
        ("ffs2-quota", 7),
        ("ffs1-old-quota", 11),
        ("ffs2-hashes", 15),
    ] {
        let pairs = Some((part, 24));
        torture(name, &Plan { pairs, ..plan() });
    }
}

/// Files grow in turns, so that their blocks are moved into clusters before they are written:
/// when a cluster is full, and with the commit.
#[test]
fn blocks_that_are_moved_into_clusters() {
    let depth = Depth {
        bounds: bounds(6, 32),
        ..Depth::default()
    };
    for name in ["ffs1-clusters", "ffs2-clusters"] {
        let plan = Plan {
            random: count(4).div_ceil(4),
            depth,
            ..plan()
        };
        torture(name, &plan);
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

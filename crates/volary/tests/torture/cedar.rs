//! Cedar: recovery is attaching, and what is left is all up to some moment.

use crate::plans::{bounds, count, torture};
use volary::torture::{Depth, Plan};

/// Returns what CI has time for.
fn plan() -> Plan {
    Plan {
        random: count(1),
        depth: Depth {
            bounds: bounds(6, 16),
            nested_bounds: bounds(3, 16),
            nested_each: 64,
            ..Depth::default()
        },
        ..crate::plans::plan()
    }
}

#[test]
fn pairs_of_operations() {
    for (name, part) in [("cedar", 0), ("cedar-each", 1), ("cedar-garbage", 2)] {
        let pairs = Some((part, 12));
        torture(
            name,
            &Plan {
                pairs,
                random: 0,
                ..plan()
            },
        );
    }
}

#[test]
fn random_scripts() {
    for name in ["cedar", "cedar-each", "cedar-garbage"] {
        torture(name, &plan());
    }
}

#[test]
fn recovery_stands_cuts_of_its_own() {
    let depth = Depth {
        nested: 2,
        ..plan().depth
    };
    for name in ["cedar", "cedar-garbage"] {
        let tally = torture(
            name,
            &Plan {
                steps: 20,
                depth,
                ..plan()
            },
        );
        assert!(tally.nested > 0);
    }
}

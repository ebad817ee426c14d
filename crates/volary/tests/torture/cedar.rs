//! Cedar: recovery is attaching, and what is left is all up to some moment.

use volary::torture::{Bounds, Depth, Plan, Tally, run, volume};

/// What CI has time for; `VOLARY_TORTURE=COUNT` runs more scripts.
fn plan() -> Plan {
    let given = std::env::var("VOLARY_TORTURE").ok();
    let random = given.map_or(1, |count| {
        count.parse().expect("VOLARY_TORTURE is a number")
    });
    let few = Bounds {
        eager: 5,
        random: 16,
        garbage: false,
        seed: 0,
    };
    Plan {
        pairs: None,
        triples: None,
        random,
        steps: 60,
        seed: 0,
        depth: Depth {
            bounds: Bounds { eager: 6, ..few },
            nested_bounds: Bounds { eager: 3, ..few },
            nested_each: 64,
            ..Depth::default()
        },
    }
}

fn torture(name: &str, plan: &Plan) -> Tally {
    let volume = volume(name).unwrap();
    let tally = run(volume, plan, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{name}: {tally}");
    assert!(tally.states > 0);
    tally
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

//! What the tests of all formats run, and how.

use volary::torture::{Bounds, Depth, Explorer, Ops, Plan, Tally, run, volume};

/// Returns how many scripts: `VOLARY_TORTURE` says, or what CI has time for.
pub(crate) fn count(default: u64) -> u64 {
    let given = std::env::var("VOLARY_TORTURE").ok();
    given.map_or(default, |n| n.parse().expect("VOLARY_TORTURE is a number"))
}

/// Nothing yet, as deep as it goes by itself.
pub(crate) fn plan() -> Plan {
    Plan {
        pairs: None,
        triples: None,
        random: 0,
        steps: 60,
        seed: 0,
        depth: Depth::default(),
    }
}

/// Returns all subsets of so many sectors in flight; of more some, and so many at random.
pub(crate) fn bounds(eager: usize, random: usize) -> Bounds {
    Bounds {
        eager,
        random,
        garbage: false,
        seed: 0,
    }
}

/// Cuts of `fsck -p` too, in half of the states.
pub(crate) fn cuts_of_the_check() -> Depth {
    Depth {
        nested: 2,
        nested_bounds: bounds(5, 16),
        nested_each: 2,
        ..Depth::default()
    }
}

/// Runs a plan on a volume.
pub(crate) fn torture(name: &str, plan: &Plan) -> Tally {
    let volume = volume(name).unwrap();
    let tally = run(volume, plan, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{name}: {tally}");
    assert!(tally.states > 0);
    tally
}

/// Explores a script on a volume.
pub(crate) fn explore(name: &str, depth: Depth, script: &str) {
    let mut explorer = Explorer::new(volume(name).unwrap(), depth).unwrap();
    let script: Ops = script.parse().unwrap();
    if let Err(failure) = explorer.explore(&script) {
        panic!("{name}: {failure}");
    }
    assert!(explorer.tally().states > 0);
}

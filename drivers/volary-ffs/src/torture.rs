//! Tests of the tests: exploring power cuts must catch each planted mistake in the reallocation of
//! blocks, and pass without one. `VOLARY_MISTAKE` names one to try alone.

use crate::FFS;
use crate::groups::mistakes::{Mistake, plant};
use volary_sim::{Bounds, Depth, Explorer, Ops, Promise, Recovery, Volume, scripts};

/// Clusters of two blocks, so that many are filled.
const VOLUME: Volume = Volume {
    name: "ffs1",
    format: &FFS,
    kind: "ffs1",
    size: 400 << 10,
    make: "block=4096,fragment=512,density=4096,maxcontig=2",
    attach: "",
    own: &[],
    preset: "",
    names: 255,
    turns: 4096,
    recovery: Recovery::Preen,
    promise: Promise::Synced,
    dirty: Some("dirty"),
    synchronous: false,
    keeping: false,
    garbage: false,
    between: None,
    aside: None,
};

const DEPTH: Depth = Depth {
    bounds: Bounds {
        eager: 5,
        random: 8,
        garbage: false,
        seed: 1,
    },
    nested: 0,
    nested_bounds: Bounds {
        eager: 3,
        random: 0,
        garbage: false,
        seed: 0,
    },
    nested_each: 1,
    lies: false,
};

/// Two files grow in turn. The first one has a block that the disk points to, and then fills a
/// cluster. A third file takes what may then be free.
const NAMED: &str = "create /a; write /a 0 4096; create /b; write /b 0 4096; sync; \
    write /a 4096 4096; create /c; write /c 0 4096; sync; detach";

/// Blocks written before the cluster was full are copied to a place that belonged to another file.
/// The disk already knows the growing file.
const LATE: &str = "create /old; write /old 0 49152; create /a; create /b; sync; \
    unlink /old; sync; write /a 0 4096; write /b 0 4096; \
    write /a 4096 4096; sync; detach";

fn trials() -> Vec<Ops> {
    let mut all: Vec<Ops> = [NAMED, LATE]
        .map(|script| script.parse().expect("a script"))
        .into();
    let at_random = (0..2).map(|seed| scripts::in_turns(seed, 20, &Default::default(), 4096));
    all.extend(at_random.map(|mut ops: Ops| {
        ops.0.push(volary_sim::Op::Detach);
        ops
    }));
    all
}

/// Explores all trials with a planted mistake. Returns the first failure.
fn explore(mistake: Option<Mistake>) -> Result<(), String> {
    plant(mistake);
    let done = trials().iter().try_for_each(|script| {
        let mut explorer = Explorer::new(&VOLUME, DEPTH)?;
        explorer.explore(script).map_err(|failure| failure.what)
    });
    plant(None);
    done
}

#[test]
fn what_catches_mistakes_finds_none_where_none_is() {
    explore(None).expect("no mistake");
}

#[test]
fn mistakes_in_the_reallocation_of_blocks_are_caught() {
    let only = std::env::var("VOLARY_MISTAKE").ok();
    let wanted = |m: &&Mistake| only.as_ref().is_none_or(|o| *o == format!("{m:?}"));
    let mut missed = Vec::new();
    for mistake in Mistake::ALL.iter().filter(wanted) {
        match explore(Some(*mistake)) {
            Err(what) => println!("{mistake:?}: {}", what.lines().next().unwrap_or_default()),
            Ok(()) => missed.push(*mistake),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

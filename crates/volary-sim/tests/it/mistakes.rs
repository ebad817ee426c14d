//! The toy as it should be stands every state; each mistake is caught.

use crate::toy::{CELLS, Mistake, Op, Script, Toy};
use volary_sim::rng::Rng;
use volary_sim::{Bounds, Depth, Explorer, Failure, Tally};

fn depth() -> Depth {
    let bounds = Bounds {
        eager: 8,
        random: 64,
        garbage: true,
        seed: 1,
    };
    Depth {
        bounds,
        nested: 2,
        nested_bounds: Bounds {
            eager: 5,
            random: 16,
            ..bounds
        },
        nested_each: 5,
        lies: false,
    }
}

fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let op = |_| match rng.below(3) {
        0 => Op::Commit,
        _ => Op::Put(rng.index(CELLS), 1 + rng.below(1000)),
    };
    Script((0..20).map(op).collect())
}

fn torture(mistake: Mistake, scripts: u64) -> Result<Tally, Box<Failure>> {
    let toy = Toy(mistake);
    let mut explorer = Explorer::new(&toy, depth()).unwrap();
    for seed in 0..scripts {
        explorer.explore(&script(seed))?;
        explorer.explore_lazily(&script(seed), 1000)?;
    }
    Ok(explorer.tally())
}

#[test]
fn the_toy_keeps_its_promises() {
    let tally = torture(Mistake::None, 5).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{tally}");
    assert!(tally.states > 1000 && tally.nested > 1000, "{tally}");
}

#[test]
fn each_mistake_in_the_toy_is_caught_and_caught_again() {
    for mistake in Mistake::ALL {
        let failure = torture(mistake, 40).expect_err(&format!("{mistake:?} is not caught"));
        println!("{mistake:?}: {}", failure.what);
        let toy = Toy(mistake);
        let mut explorer = Explorer::new(&toy, depth()).unwrap();
        let seed = (0..40).find(|s| script(*s).to_string() == failure.script);
        let again = explorer.replay(&script(seed.unwrap()), &failure.cuts);
        assert_eq!(again.unwrap_err().what, failure.what, "{mistake:?}");
    }
}

#[test]
fn lying_flushes_make_nobody_panic() {
    let toy = Toy(Mistake::None);
    let depth = Depth {
        lies: true,
        ..depth()
    };
    let mut explorer = Explorer::new(&toy, depth).unwrap();
    for seed in 0..10 {
        explorer.explore(&script(seed)).unwrap();
    }
    assert!(explorer.tally().states > 1000);
}

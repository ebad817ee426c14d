//! Randomized tests that say how to run a failing one again.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use std::hash::{BuildHasher, RandomState};

/// Runs `test` on so many random values, or on those of the seed that
/// `VOLARY_SEED` gives.
///
/// # Panics
/// If one fails, with the smallest value found that does and the command that
/// runs the same values again.
pub(crate) fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let given = std::env::var("VOLARY_SEED")
        .ok()
        .and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(cases));
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&strategy, |value| {
        test(value);
        Ok(())
    });
    let Err(e) = result else { return };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    let report = match e {
        TestError::Fail(why, value) => format!("{why}, on {value:#?}"),
        TestError::Abort(why) => why.to_string(),
    };
    panic!("{report}\nto replay: VOLARY_SEED={seed} cargo test -p volary-block {name}");
}

//! Randomised tests that tell how to repeat a failure.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use std::hash::{BuildHasher, RandomState};

/// Runs `test` on `cases` random values. `VOLARY_SEED` sets the seed.
///
/// # Panics
/// If a value fails. The message has the smallest failing value found, and the command that repeats
/// the run.
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

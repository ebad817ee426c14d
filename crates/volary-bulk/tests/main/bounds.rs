//! Memory, on layouts that are made to need much of it.

use crate::volumes::{Laid, SHAPES, crowded, laid, run_one};
use volary_bulk::{Cleaning, Method, Options};
use volary_testkit::rng::Rng;
use volary_testkit::turns::Turns;

const MIB: u64 = 1 << 20;

/// All files are begun before any is complete.
fn woven() -> Laid {
    crowded(SHAPES[1], Turns::new(90, 30, 4096), 4000)
}

#[test]
fn files_that_are_all_begun_at_once_stay_within_the_memory() {
    let laid = woven();
    let content = laid.content();
    for cleaning in [Cleaning::OnDemand, Cleaning::FirstFit] {
        for workers in [1, 4] {
            let options = Options {
                memory: MIB,
                cleaning,
                workers,
                ..Options::default()
            };
            // The peak is looked at by `run_one`.
            let got = run_one(options, &laid);
            assert!(got.content == content, "{cleaning:?}");
            let sum = &got.summary;
            match cleaning {
                Cleaning::OnDemand => assert!(sum.cleanings > 1, "{sum:?}"),
                Cleaning::FirstFit => assert!(sum.cleanings == 0 && sum.sweeps > 2, "{sum:?}"),
            }
            assert!(sum.parts > 1, "{sum:?}");
        }
    }
}

#[test]
fn with_enough_memory_there_is_one_part_and_one_sweep() {
    let options = Options {
        memory: 64 * MIB,
        ..Options::default()
    };
    let sum = run_one(options, &woven()).summary;
    assert_eq!((sum.parts, sum.sweeps, sum.cleanings), (1, 1, 0));
}

#[test]
fn random_options_give_the_same_files() {
    let laid = laid(SHAPES[0], Turns::new(20, 15, 2048), false);
    let content = laid.content();
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let options = Options {
            memory: MIB + rng.below(3 * MIB),
            method: *rng.pick(&[Method::DaftNm, Method::DaftM]),
            cleaning: *rng.pick(&[Cleaning::OnDemand, Cleaning::FirstFit]),
            whole_max: 1 + rng.below(200_000),
            gap: Some(rng.below(100_000)),
            request: Some(1 + rng.below(300_000)),
            depth: Some(1 + rng.index(5)),
            workers: 1 + rng.index(3),
            ..Options::default()
        };
        let what = format!("seed {seed}: {options:?}");
        let got = run_one(options, &laid);
        assert!(got.failed.is_empty() && got.content == content, "{what}");
    }
}

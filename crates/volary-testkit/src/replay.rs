//! Random sequences: which seeds to run, the smallest that still fails, and the
//! command that runs it again.

use crate::suite::replay_command;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many sequences are tried at most, to find a smaller one.
const TRIES: usize = 400;

/// Runs each of `seeds`; with `VOLARY_SEED` set, only that one; with `VOLARY_SEQS`,
/// so many from the first on.
pub fn seeds(seeds: Range<u64>, mut run: impl FnMut(u64)) {
    let number = |key| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    if let Some(seed) = number("VOLARY_SEED") {
        return run(seed);
    }
    let count = number("VOLARY_SEQS").unwrap_or(seeds.end - seeds.start);
    (seeds.start..seeds.start + count).for_each(run);
}

/// Runs the steps of a seed, and shrinks them if they fail; before that,
/// `shrinking` is called, for those who want to wait for less then.
///
/// # Panics
/// If they fail; the message has the fewest that do, and how to run the seed.
pub fn hold<T: Clone + Debug>(
    seed: u64,
    steps: Vec<T>,
    shrinking: impl FnOnce(),
    run: impl Fn(&[T]),
) {
    let words_of = |steps: &[T]| {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(steps)));
        outcome.err().map(|panic| panic_words(panic.as_ref()))
    };
    let Some(words) = words_of(&steps) else {
        return;
    };
    println!("seed {seed} fails, shrinking: {words}");
    shrinking();
    let (steps, words) = smallest(steps, words, words_of);
    let again = replay_command("VOLARY_SEED", &seed.to_string());
    let steps: String = steps.iter().map(|step| format!("    {step:?}\n")).collect();
    panic!("{words}\nafter\n{steps}to run it again: {again}");
}

/// Shrinks the steps: removes chunks, ever smaller, as long as the rest still fails.
fn smallest<T: Clone>(
    mut steps: Vec<T>,
    mut words: String,
    fails: impl Fn(&[T]) -> Option<String>,
) -> (Vec<T>, String) {
    let mut tries = 0;
    let mut chunk = steps.len().div_ceil(2);
    while chunk > 0 {
        // From the end: later steps rest on earlier ones.
        let mut end = steps.len();
        while end > 0 && tries < TRIES {
            tries += 1;
            let start = end.saturating_sub(chunk);
            let mut fewer = steps.clone();
            fewer.drain(start..end);
            if let Some(other) = fails(&fewer) {
                (steps, words) = (fewer, other);
            }
            end = start.min(steps.len());
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    (steps, words)
}

/// Returns what a panic says.
pub(crate) fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    format!("panicked: {}", words.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_out() {
        let fails = |steps: &[u32]| {
            let both = steps.contains(&3) && steps.contains(&8);
            both.then(|| "both".to_owned())
        };
        let (steps, words) = smallest((0..20).collect(), String::new(), fails);
        assert_eq!((steps, words), (vec![3, 8], "both".to_owned()));
    }

    #[test]
    fn what_fails_says_how_to_run_it_again() {
        let fails = |steps: &[i32]| assert!(!steps.contains(&2), "two");
        let run = || hold(7, vec![1, 2], || (), fails);
        let panic = catch_unwind(run).unwrap_err();
        let words = panic_words(panic.as_ref());
        assert!(
            words.contains("VOLARY_SEED=7") && words.contains("two"),
            "{words}"
        );
    }
}

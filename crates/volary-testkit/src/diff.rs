//! The differential runner: random operations on a volume and on the model
//! ([`volary_mem`], made to promise the same), every answer compared.
//!
//! Answers are compared with their kinds of errors; every 64 operations, and at
//! the end, the two whole trees are. A sequence that tells the two apart is
//! shrunk to the smallest that still does, and printed as lines like code with
//! the command that runs its seed again (`VOLARY_SEED`).
//!
//! Identity is compared as well: a node of the model must be one node of the
//! volume for as long as it lives, and `Stale` on both once it is gone.

mod generate;
mod op;
mod pair;
mod rules;
mod shrink;
mod side;

pub use op::{Op, Path};
pub use rules::{NAMES, Rules, Times};

use crate::replay::panic_words;
use crate::rng::Rng;
use crate::suite::{Fresh, replay_command};
use op::Show;
use pair::Pair;
use rules::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use volary_core::{Caps, Time};
use volary_mem::{Mem, MemOptions};

/// A runner for one kind of volume.
pub struct Diff {
    name: String,
    make: Box<dyn Fn() -> Fresh>,
    rules: Rules,
    ops: usize,
}

impl Diff {
    /// Returns a runner of sequences of 200 operations on what `make` makes.
    pub fn new<F: Into<Fresh>>(name: impl Into<String>, make: impl Fn() -> F + 'static) -> Self {
        Self {
            name: name.into(),
            make: Box::new(move || make().into()),
            rules: Rules::default(),
            ops: 200,
        }
    }

    /// With these rules.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// With sequences of this length.
    #[must_use]
    pub fn ops(mut self, ops: usize) -> Self {
        self.ops = ops;
        self
    }

    /// Runs the sequences of seeds from `first` on, `count` of them; with
    /// `VOLARY_SEED` set, only that one; with `VOLARY_SEQS`, so many.
    ///
    /// # Panics
    /// If a sequence tells the volume from the model; the message has the
    /// shortest one found and the command that runs it again.
    pub fn run(&self, first: u64, count: u64) {
        self.run_then(first, count, |_| ());
    }

    /// [Runs](Self::run) the sequences, and calls `after` with each one's seed once it holds: of
    /// the volumes that `make` has made by then the last one has lived it, and is detached.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_then(&self, first: u64, count: u64, mut after: impl FnMut(u64)) {
        let number = |key| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
        if let Some(seed) = number("VOLARY_SEED") {
            self.run_seed(seed);
            return after(seed);
        }
        let count = number("VOLARY_SEQS").unwrap_or(count);
        for seed in first..first + count {
            self.run_seed(seed);
            after(seed);
        }
        println!("{}: {count} sequences of {} hold", self.name, self.ops);
    }

    fn run_seed(&self, seed: u64) {
        let ops = self.sequence(seed);
        let Some(failure) = self.try_ops(&ops) else {
            return;
        };
        println!("{}: seed {seed} fails, shrinking", self.name);
        let (ops, failure) = shrink::shrink(ops, failure, |ops| self.try_ops(ops));
        panic!("{}", self.report(seed, &ops, &failure));
    }

    /// Returns the operations of a seed, on what the caps allow and a little beyond.
    fn sequence(&self, seed: u64) -> Vec<Op> {
        let caps = (self.make)().fs.caps();
        let mut rng = Rng::new(seed);
        let names = self.rules.names.len();
        (0..self.ops)
            .map(|_| generate::op(&mut rng, names, &caps))
            .collect()
    }

    /// Runs the operations on a fresh pair; what fails, if anything does.
    fn try_ops(&self, ops: &[Op]) -> Option<Failure> {
        let mut at = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let fresh = (self.make)();
            let model = self.model(&fresh.fs.caps());
            let mut pair = Pair::new(fresh, model, &self.rules);
            for (i, op) in ops.iter().enumerate() {
                at = i;
                pair.step(op)?;
                if (i + 1).is_multiple_of(64) {
                    pair.compare_trees()?;
                }
            }
            at = ops.len();
            pair.end()
        }));
        let words = match outcome {
            Ok(Ok(())) => return None,
            Ok(Err(words)) => words,
            Err(panic) => panic_words(panic.as_ref()),
        };
        Some(Failure { at, words })
    }

    /// Returns the model for a volume with these caps: without a bound on its room.
    fn model(&self, caps: &Caps) -> volary_core::Fs {
        let (uid, gid, file_mode, dir_mode) = self.rules.owner;
        let options = MemOptions {
            caps: *caps,
            size: u64::MAX >> 2,
            nodes_max: u64::MAX,
            uid,
            gid,
            file_mode,
            dir_mode,
            fold: self.rules.fold,
            refuses: self.rules.refuses,
            ..MemOptions::default()
        };
        Mem::attach(options, Time::from_secs(pair::START)).expect("the model")
    }

    fn report(&self, seed: u64, ops: &[Op], failure: &Failure) -> String {
        let mut text = format!("{}: differs from the model (seed {seed}):\n", self.name);
        for (i, op) in ops.iter().enumerate() {
            let mark = if i == failure.at { "  // here" } else { "" };
            text += &format!("    {};{mark}\n", Show(op, &self.rules.names));
        }
        if failure.at >= ops.len() {
            text += "    // here, at the end\n";
        }
        text += &format!("{}\nTo run it again:\n", failure.words);
        text += &replay_command("VOLARY_SEED", &seed.to_string());
        text
    }
}

#[cfg(test)]
mod tests;

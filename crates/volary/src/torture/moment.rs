//! The moment in a script at which a process is killed.

use std::cell::RefCell;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use volary_core::Result;
use volary_sim::rng::Rng;
use volary_sim::{Op, Ops, Progress, Volume};

type Words<T> = std::result::Result<T, String>;

/// The moment at which a process is killed.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// The operation of its script during which it is killed.
    pub(super) op: usize,
    /// How long to spin after that operation has begun.
    spins: u64,
}

impl Moment {
    pub(super) fn of(steps: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6b69_6c6c);
        let op = rng.index(steps.max(1));
        let spins = rng.below(50_000);
        Self { op, spins }
    }

    /// Spins from the beginning of the operation to the moment.
    pub(super) fn pass(self) {
        (0..self.spins).for_each(|_| std::hint::spin_loop());
    }
}

/// Runs a script by `act`, which gets the progress. Kills the process that serves the volume at
/// some moment, at the end at the latest, and then calls `killed`.
/// # Errors
/// Those of operations before that moment, in words.
pub(super) fn killed_midway(
    volume: &Volume,
    process: &mut Child,
    asked: &Ops,
    seed: u64,
    mut act: impl FnMut(usize, &Op, u32, &mut Progress) -> Result<()>,
    killed: impl FnOnce() + Send,
) -> Words<Progress> {
    let at = Moment::of(asked.0.len(), seed);
    let progress = RefCell::new(Progress::default());
    let (now, told) = mpsc::channel();
    let done = thread::scope(|scope| {
        let killer = scope.spawn(move || {
            // A message and a closed channel both mean that the time has come.
            let _ = told.recv();
            at.pass();
            let sent = process.kill();
            killed();
            sent
        });
        let mut say = |line: &str| {
            let mut progress = progress.borrow_mut();
            progress.hear(line);
            if progress.began == at.op + 1 {
                let _ = now.send(());
            }
        };
        let act = |i, op: &Op, tag| act(i, op, tag, &mut progress.borrow_mut());
        let done = volume.load_by(asked, seed, act, &mut say);
        drop(now);
        let killed = killer.join().map_err(|_| "a thread panicked")?;
        killed.map_err(|e| e.to_string())?;
        Ok::<_, String>(done)
    })?;
    let progress = progress.into_inner();
    match done {
        Err(what) if progress.began <= at.op => Err(what),
        _ => Ok(progress),
    }
}

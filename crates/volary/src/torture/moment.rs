//! The moment in a script at which a process is killed.

use std::cell::RefCell;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use volary_core::Result;
use volary_sim::rng::Rng;
use volary_sim::{Op, Ops, Progress, Volume};

type Words<T> = std::result::Result<T, String>;

/// When a process is killed.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// In this operation of its script,
    pub(super) op: usize,
    /// or so long after that has begun.
    spins: u64,
}

impl Moment {
    pub(super) fn of(steps: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6b69_6c6c);
        let op = rng.index(steps.max(1));
        let spins = rng.below(50_000);
        Self { op, spins }
    }

    /// Lets the time pass from the beginning of the operation on.
    pub(super) fn pass(self) {
        (0..self.spins).for_each(|_| std::hint::spin_loop());
    }
}

/// Does a script by `act`, which is told how far it is, and kills the process that serves the volume at
/// some moment, at the end at the latest; `killed` is called then.
///
/// # Errors
/// In words; of operations before that moment.
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
            // Who tells, or has gone, is as good.
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

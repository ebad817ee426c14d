//! Files that are read through the session, ahead of their turn: several threads, answers in order.

use crate::delivery::Why;
use crate::ordinary::{self, Fetched};
use crate::outlet::{Job, Outlet};
use crate::run::Part;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What is read ahead.
pub(crate) struct Fetch<'a> {
    part: &'a Part<'a>,
    files: &'a [(u32, Why)],
    /// The next file.
    next: Mutex<usize>,
    ready: Mutex<BTreeMap<usize, Option<Fetched>>>,
    arrived: Condvar,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(part: &'a Part<'a>, files: &'a [(u32, Why)]) -> Self {
        Self {
            part,
            files,
            next: Mutex::default(),
            ready: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Reads all files on `threads` threads, and gives them in order. Those that cannot be read like
    /// this are read one by one when their turn comes.
    pub(crate) fn run(&self, threads: usize, outlet: &Outlet<'_>) -> ControlFlow<()> {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work());
            }
            let all = self.files.iter().enumerate();
            for (number, (file, why)) in all {
                let job = match self.wait(number)? {
                    Some(fetched) => Job::Fetched(*file, *why, fetched),
                    None => Job::Ordinary(*file, *why),
                };
                if outlet.give(job).is_break() {
                    self.part.run.end();
                    return ControlFlow::Break(());
                }
            }
            self.part.run.check()
        })
    }

    /// Runs on each thread: reads until there are no more files, or the run has ended.
    fn work(&self) {
        while let Some((number, file, buf)) = self.begin() {
            let fetched = buf.and_then(|buf| ordinary::fetch(self.part, file, buf));
            self.ready.lock().insert(number, fetched);
            self.arrived.notify_all();
        }
        // Who waits looks whether the run has ended.
        let _ready = self.ready.lock();
        self.arrived.notify_all();
    }

    /// The next file and room for it, if it is not too large. Room is waited for in the order of files: the
    /// one that is given first has it first.
    fn begin(&self) -> Option<(usize, u32, Option<crate::budget::Buf>)> {
        let mut next = self.next.lock();
        let number = *next;
        let (file, _) = self.files.get(number)?;
        let run = self.part.run;
        run.check().continue_value()?;
        let listed = self.part.list.files.get(*file as usize);
        let size = listed.map_or(u64::MAX, |listed| listed.attr.size);
        let buf = match size <= run.shares.whole_max {
            // One more byte tells that it has grown.
            true => Some(run.reads.buffer(size + 1)?),
            false => None,
        };
        *next += 1;
        Some((number, *file, buf))
    }

    fn wait(&self, number: usize) -> ControlFlow<(), Option<Fetched>> {
        let mut ready = self.ready.lock();
        loop {
            if let Some(fetched) = ready.remove(&number) {
                return ControlFlow::Continue(fetched);
            }
            if self.part.run.check().is_break() {
                return ControlFlow::Break(());
            }
            self.arrived.wait(&mut ready);
        }
    }
}

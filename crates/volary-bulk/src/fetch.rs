//! Files that are read through the session, ahead of their turn: several threads, answers in order.

use crate::budget::Buf;
use crate::delivery::Why;
use crate::ordinary::{Fetched, Fetching};
use crate::outlet::{Job, Outlet};
use crate::run::Part;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Files that a thread has open at a time, and their bytes unless the last one has more.
const FILES: usize = 32;
const BYTES: u64 = 1 << 20;

/// A file, and room for it if it is not too large.
type Wanted = (u32, Option<Buf>);

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

    /// Runs on each thread: reads some files at a time until there are no more, or the run has ended. All
    /// of them are under way before the first is waited for.
    fn work(&self) {
        while let Some((first, files)) = self.begin() {
            let begin = |(file, buf)| Fetching::begin(self.part, file, buf?);
            let fetching: Vec<_> = files.into_iter().map(begin).collect();
            let fetched = fetching.into_iter().map(|one| one?.end());
            let fetched: Vec<_> = (first..).zip(fetched).collect();
            self.ready.lock().extend(fetched);
            self.arrived.notify_all();
        }
        // Who waits looks whether the run has ended.
        let _ready = self.ready.lock();
        self.arrived.notify_all();
    }

    /// The next files, and room for those that are not too large. Room for the first is waited for, in
    /// the order of files: the one that is given first has it first.
    fn begin(&self) -> Option<(usize, Vec<Wanted>)> {
        let mut next = self.next.lock();
        let run = self.part.run;
        run.check().continue_value()?;
        let (first, mut bytes, mut some) = (*next, 0, Vec::new());
        while let Some((file, _)) = self.files.get(*next)
            && some.len() < FILES
            && bytes < BYTES
        {
            let listed = self.part.list.files.get(*file as usize);
            let size = listed.map_or(u64::MAX, |listed| listed.attr.size);
            // Files that a kernel makes up say that they are empty.
            let len = size.max(1);
            let buf = match (size <= run.shares.whole_max, some.is_empty()) {
                (false, _) => None,
                (true, true) => Some(run.reads.buffer(len)?),
                (true, false) => match run.reads.try_buffer(len) {
                    None => break,
                    buf => buf,
                },
            };
            *next += 1;
            bytes += buf.as_ref().map_or(0, |_| len);
            some.push((*file, buf));
        }
        (!some.is_empty()).then_some((first, some))
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

//! Files that are read through the session ahead of their turn: by several threads, with results in
//! order.

use crate::delivering::ordinary::{Fetched, Fetching};
use crate::delivering::outlet::{Job, Outlet};
use crate::delivering::together;
use crate::interface::delivery::Why;
use crate::state::budget::Buf;
use crate::state::part::Part;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The most files, and the most bytes, that a thread takes at a time. The last file may exceed the
/// bytes.
const FILES: usize = 32;
const BYTES: u64 = 1 << 20;

/// The most files of a batch, and the number of threads that read batches. One thread keeps the
/// device busy; more would compete with the walk for processors.
const FILES_TOGETHER: usize = 128;
const TOGETHER: usize = 1;

/// The number of threads that read files one by one, unless the user sets another.
const APART: usize = 4;

/// A file, and its buffer unless it is too large.
type Wanted = (u32, Option<Buf>);

/// Files that are being read ahead.
pub(crate) struct Fetch<'a> {
    part: &'a Part<'a>,
    /// Whether the driver reads files in batches.
    together: bool,
    files: &'a [(u32, Why)],
    /// The index of the next file.
    next: Mutex<usize>,
    ready: Mutex<BTreeMap<usize, Option<Fetched>>>,
    arrived: Condvar,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(part: &'a Part<'a>, files: &'a [(u32, Why)]) -> Self {
        Self {
            part,
            together: !files.is_empty() && together::has_batches(part),
            files,
            next: Mutex::default(),
            ready: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Reads all files on several threads, and delivers them in order. A file that cannot be read
    /// ahead is read when its turn comes.
    pub(crate) fn run(&self, outlet: &Outlet<'_>) -> ControlFlow<()> {
        let most = if self.together { TOGETHER } else { APART };
        let threads = self.part.run.options.depth.unwrap_or(most);
        let threads = threads.min(self.files.len());
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

    /// Runs on each thread: reads the next files until there are no more, or the run has ended.
    fn work(&self) {
        while let Some((first, files)) = self.begin() {
            let fetched = match self.together {
                true => self.together(files),
                false => self.apart(files),
            };
            let fetched: Vec<_> = (first..).zip(fetched).collect();
            self.ready.lock().extend(fetched);
            self.arrived.notify_all();
        }
        // Wakes the thread that waits for a file, so that it sees that the run has ended.
        let _ready = self.ready.lock();
        self.arrived.notify_all();
    }

    /// Reads files one by one. Opens all of them and announces their reads to the driver before the
    /// first read.
    fn apart(&self, files: Vec<Wanted>) -> Vec<Option<Fetched>> {
        let begin = |(file, buf)| Fetching::begin(self.part, file, buf?);
        let fetching: Vec<_> = files.into_iter().map(begin).collect();
        fetching.into_iter().map(|one| one?.end()).collect()
    }

    /// Reads files in a batch. Then reads those that the batch left out one by one.
    fn together(&self, files: Vec<Wanted>) -> Vec<Option<Fetched>> {
        let is_small: Vec<bool> = files.iter().map(|(_, buf)| buf.is_some()).collect();
        let small = files
            .into_iter()
            .filter_map(|(file, buf)| Some((file, buf?)));
        let mut read = together::read(self.part, small.collect()).into_iter();
        let end = |is_small| match is_small {
            true => match read.next()? {
                Ok(fetched) => Some(fetched),
                Err((file, buf)) => Fetching::begin(self.part, file, buf)?.end(),
            },
            false => None,
        };
        is_small.into_iter().map(end).collect()
    }

    /// Returns the next files, with buffers for those that are not too large. Waits only for the
    /// first one's buffer, in the order of files: the file that is delivered first gets it first.
    fn begin(&self) -> Option<(usize, Vec<Wanted>)> {
        let mut next = self.next.lock();
        let run = self.part.run;
        run.check().continue_value()?;
        let (first, mut bytes, mut some) = (*next, 0, Vec::new());
        let most = if self.together { FILES_TOGETHER } else { FILES };
        while let Some((file, _)) = self.files.get(*next)
            && some.len() < most
            && bytes < BYTES
        {
            let head = self.part.list.files.head(*file as usize);
            let size = head.map_or(u64::MAX, |head| head.size);
            // Files that a kernel generates (as in `/proc`) report a size of 0.
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

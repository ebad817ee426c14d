//! Delivery to the consumer: on the engine's own thread, or on several others.

use crate::delivering::ordinary::{self, Fetched};
use crate::interface::delivery::{File, Part as Told, Way, Why};
use crate::state::budget::Buf;
use crate::state::part::{Again, Part};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Something to deliver.
pub(crate) enum Job {
    /// An empty file.
    Empty(u32),
    /// A file, and the range of its bytes in a shared buffer.
    Shared(u32, Arc<Buf>, Range<usize>),
    /// A file, and a buffer with all of its bytes.
    Own(u32, Buf),
    /// A file that was read through the session.
    Fetched(u32, Why, Fetched),
    /// A file to read through the session.
    Ordinary(u32, Why),
}

/// The most jobs that wait for a thread of the consumer.
const WAITING_MAX: usize = 256;

/// Passes files to the consumer once their bytes are read.
pub(crate) struct Outlet<'a> {
    part: &'a Part<'a>,
    queue: Mutex<Queue>,
    changed: Condvar,
    again: Mutex<Vec<Again>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl<'a> Outlet<'a> {
    pub(crate) fn new(part: &'a Part<'a>) -> Self {
        Self {
            part,
            queue: Mutex::default(),
            changed: Condvar::new(),
            again: Mutex::default(),
        }
    }

    /// Delivers a job, or queues it for a thread of the consumer.
    pub(crate) fn give(&self, job: Job) -> ControlFlow<()> {
        self.part.run.check()?;
        if self.part.run.options.workers == 1 {
            return self.perform(job);
        }
        let mut queue = self.queue.lock();
        while queue.jobs.len() >= WAITING_MAX {
            self.changed.wait(&mut queue);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.changed.notify_all();
        ControlFlow::Continue(())
    }

    /// Runs on each thread of the consumer: delivers jobs until there are no more.
    pub(crate) fn work(&self) {
        loop {
            let mut queue = self.queue.lock();
            let job = loop {
                match queue.jobs.pop_front() {
                    Some(job) => break job,
                    None if queue.is_closed => return,
                    None => self.changed.wait(&mut queue),
                }
            };
            drop(queue);
            self.changed.notify_all();
            // The thread that gave the job sees that the run has ended.
            let _ = self.part.run.check().is_continue() && self.perform(job).is_continue();
        }
    }

    /// Declares that there will be no more jobs.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Records a file that changed or could not be read. It is read through the session at the end.
    pub(crate) fn again(&self, file: u32, why: Why) {
        self.again.lock().push((file, why));
    }

    /// Returns the files to be read again.
    pub(crate) fn into_again(self) -> Vec<Again> {
        self.again.into_inner()
    }

    fn perform(&self, job: Job) -> ControlFlow<()> {
        match job {
            Job::Empty(file) => self.whole(file, Way::Direct, &[]),
            Job::Shared(file, buf, range) => match buf.bytes.get(range) {
                Some(bytes) => self.whole(file, Way::Direct, bytes),
                None => {
                    self.again(file, Why::Unread);
                    ControlFlow::Continue(())
                }
            },
            Job::Own(file, buf) => self.whole(file, self.part.way(file), &buf.bytes),
            Job::Fetched(file, why, fetched) => self.fetched(file, why, &fetched),
            Job::Ordinary(file, why) => ordinary::deliver(self.part, file, why),
        }
    }

    fn fetched(&self, file: u32, why: Why, fetched: &Fetched) -> ControlFlow<()> {
        let part = self.part;
        let Some(listed) = part.list.files.get(file as usize) else {
            return ControlFlow::Continue(());
        };
        let way = Way::Ordinary(why);
        let view = File {
            data: fetched.data.as_deref(),
            ..listed.view(part.number, way)
        };
        let bytes = &fetched.buf.bytes;
        ordinary::tell(part, &view, Told::Whole(bytes))?;
        part.run.tally.delivered(way, bytes.len() as u64);
        ControlFlow::Continue(())
    }

    fn whole(&self, file: u32, way: Way, bytes: &[u8]) -> ControlFlow<()> {
        let part = self.part;
        let Some(listed) = part.list.files.get(file as usize) else {
            return ControlFlow::Continue(());
        };
        if part.has_changed(&listed) {
            self.again(file, Why::Changed);
            return ControlFlow::Continue(());
        }
        let view = listed.view(part.number, way);
        let taken = part.run.consumer.take(&view, Told::Whole(bytes));
        if taken.is_break() {
            part.run.end();
        } else {
            part.run.tally.delivered(way, bytes.len() as u64);
        }
        taken
    }
}

//! A second thread that writes files of the host, as the host takes longer to write many small
//! files than to read them.

use crate::sinks::folder::{Folder, Opened};
use crate::stream::Files;
use crate::told::failure::{Done, Failure};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, available_parallelism};

/// Files of a directory, and the result of opening each. There are fewer results if the last one
/// ends the copy.
pub(super) type Job = (Arc<Folder>, Files, Vec<Done<Option<Opened>>>);

/// The most jobs that wait, as their files are open.
const JOBS: usize = 4;

/// The helper thread. Dropping it waits until all its jobs are done.
pub(super) struct Helper {
    jobs: SyncSender<Job>,
    done: Receiver<Vec<Done>>,
    /// Jobs whose results were not returned yet.
    under_way: usize,
}

impl Helper {
    /// Starts a helper, if there is a second processor for it.
    pub(super) fn new() -> Option<Self> {
        if available_parallelism().is_ok_and(|n| n.get() < 2) {
            return None;
        }
        let (jobs, todo) = sync_channel(JOBS);
        let (tell, done) = channel();
        let work = move || {
            while let Ok(job) = todo.recv() {
                if tell.send(write(job)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("helper".into()).spawn(work);
        thread.is_ok().then_some(Self {
            jobs,
            done,
            under_way: 0,
        })
    }

    /// Queues files for writing. Returns the results of those that are done.
    pub(super) fn write(&mut self, job: Job) -> Vec<Done> {
        if self.jobs.send(job).is_err() {
            return vec![Err(died())];
        }
        self.under_way += 1;
        let told: Vec<_> = self.done.try_iter().collect();
        self.under_way -= told.len();
        told.into_iter().flatten().collect()
    }

    /// Waits until all files are written. Returns the results that were not returned yet.
    pub(super) fn settle(&mut self) -> Vec<Done> {
        let mut all = Vec::new();
        for _ in 0..std::mem::take(&mut self.under_way) {
            match self.done.recv() {
                Ok(told) => all.extend(told),
                Err(_) => {
                    all.push(Err(died()));
                    break;
                }
            }
        }
        all
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.settle();
    }
}

fn died() -> Failure {
    Failure::words("", "writer died").stopping()
}

/// Writes the files of a job.
fn write((folder, files, opened): Job) -> Vec<Done> {
    let mut opened = opened.into_iter();
    files.each(|name, meta, data| match opened.next() {
        Some(Ok(Some(file))) => folder.write(&file, name, meta, data),
        Some(Ok(None)) | None => Ok(()),
        Some(Err(fail)) => Err(fail),
    })
}

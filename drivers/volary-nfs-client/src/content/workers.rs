//! Threads for calls that nobody waits for, started when they are first needed.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Workers {
    shared: Arc<Shared>,
    max: usize,
}

struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    is_ended: bool,
}

impl Workers {
    /// Returns a pool of at most `max` threads. None is started yet.
    pub(crate) fn new(max: usize) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            more: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            max,
        }
    }

    /// Queues a job. Returns it if all workers are busy and as many jobs are queued.
    pub(crate) fn hire<J: FnOnce() + Send + 'static>(&self, job: J) -> Result<(), J> {
        let mut state = self.shared.state.lock();
        if state.is_ended || state.jobs.len() >= state.idle + self.max {
            return Err(job);
        }
        if state.idle <= state.jobs.len() && state.threads.len() < self.max {
            let shared = Arc::clone(&self.shared);
            let thread = Builder::new().name("nfs client".into());
            match thread.spawn(move || shared.work()) {
                Ok(thread) => state.threads.push(thread),
                Err(_) if state.threads.is_empty() => return Err(job),
                Err(_) => {}
            }
        }
        state.jobs.push_back(Box::new(job));
        drop(state);
        self.shared.more.notify_one();
        Ok(())
    }

    /// Finishes the queued jobs, and ends the threads.
    pub(crate) fn end(&self) {
        let mut state = self.shared.state.lock();
        state.is_ended = true;
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.shared.more.notify_all();
        let me = std::thread::current().id();
        for thread in threads {
            if thread.thread().id() != me {
                // A panic was reported when it happened.
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
            } else if state.is_ended {
                return;
            } else {
                state.idle += 1;
                self.more.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_job_is_done_once_by_somebody() {
        let (workers, done) = (Workers::new(3), Arc::new(AtomicUsize::new(0)));
        for _ in 0..1000 {
            let count = Arc::clone(&done);
            let job = move || {
                count.fetch_add(1, Ordering::SeqCst);
            };
            if let Err(job) = workers.hire(job) {
                job();
            }
        }
        workers.end();
        assert_eq!(done.load(Ordering::SeqCst), 1000);
        assert!(workers.hire(|| ()).is_err(), "it has ended");
    }
}

//! Requests that wait for a lock or a lease, each on its own thread, so that others are answered
//! meanwhile. One thread checks whether the callers still want the answers.

use crate::requests::signals::is_interrupted;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use volary_core::{Cancel, Kind, Result};

/// The most requests that may wait at once. Each takes a thread.
const WAITING_MAX: usize = 256;
/// How often the callers are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The waiting requests.
#[derive(Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<(u32, Arc<Cancel>)>,
    watched: bool,
    ended: bool,
}

impl Waiters {
    /// Runs `wait` on its own thread. Its cancel token is set when the thread `caller` of some
    /// process gets a signal, and when the mount ends.
    ///
    /// # Errors
    /// `Busy` if too many wait already.
    pub(crate) fn run(
        self: &Arc<Self>,
        caller: u32,
        wait: impl FnOnce(&Arc<Cancel>) + Send + 'static,
    ) -> Result<()> {
        let cancel = Arc::new(Cancel::new());
        self.enter(caller, &cancel)?;
        let all = Arc::clone(self);
        let mine = Arc::clone(&cancel);
        let started = thread::Builder::new()
            .name("volary-wait".into())
            .spawn(move || {
                wait(&mine);
                all.leave(&mine);
            });
        if started.is_err() {
            self.leave(&cancel);
            return Err(Kind::Busy.into());
        }
        Ok(())
    }

    /// Cancels all waiting requests, and those that come later.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        for (_, cancel) in &state.waiting {
            cancel.set();
        }
        self.changed.notify_all();
    }

    fn enter(self: &Arc<Self>, caller: u32, cancel: &Arc<Cancel>) -> Result<()> {
        let mut state = self.state.lock();
        if state.ended || state.waiting.len() >= WAITING_MAX {
            return Err(Kind::Busy.into());
        }
        state.waiting.push((caller, Arc::clone(cancel)));
        if !state.watched {
            let all = Arc::clone(self);
            let watcher = thread::Builder::new().name("volary-watch".into());
            state.watched = watcher.spawn(move || all.watch()).is_ok();
        }
        Ok(())
    }

    fn leave(&self, cancel: &Arc<Cancel>) {
        let mut state = self.state.lock();
        state
            .waiting
            .retain(|(_, other)| !Arc::ptr_eq(other, cancel));
        self.changed.notify_all();
    }

    /// Checks all waiting requests regularly, until there are none.
    fn watch(&self) {
        let mut state = self.state.lock();
        while !state.waiting.is_empty() && !state.ended {
            for (caller, cancel) in &state.waiting {
                // Callers outside of this host's PID namespace are 0.
                if *caller != 0 && is_interrupted(*caller) {
                    cancel.set();
                }
            }
            self.changed.wait_for(&mut state, LOOK_EVERY);
        }
        state.watched = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_end_sends_all_away_and_lets_nobody_in() {
        let waiters = Arc::new(Waiters::default());
        let (tell, told) = mpsc::channel();
        let wait = move |cancel: &Arc<Cancel>| {
            while !cancel.is_set() {
                thread::yield_now();
            }
            tell.send(()).unwrap();
        };
        waiters.run(0, wait).unwrap();
        waiters.end();
        told.recv().unwrap();
        assert_eq!(waiters.run(0, |_| ()).unwrap_err(), Kind::Busy);
    }

    #[test]
    fn who_is_gone_does_not_wait() {
        let waiters = Arc::new(Waiters::default());
        let (tell, told) = mpsc::channel();
        let wait = move |cancel: &Arc<Cancel>| {
            while !cancel.is_set() {
                thread::yield_now();
            }
            tell.send(()).unwrap();
        };
        waiters.run(u32::MAX, wait).unwrap();
        told.recv().unwrap();
    }
}

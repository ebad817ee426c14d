//! [`Turn`]: whose turn it is among the threads of a connection.

use super::Reply;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use volary_session::{Party, Pool, Pooled};

/// Threads that stay to wait for the turn.
const IDLE_MAX: usize = 2;

/// The turn of a connection.
#[derive(Debug)]
pub(crate) struct Turn {
    state: Mutex<State>,
    free: Condvar,
    threads_max: usize,
    /// Where those beside the first come from, and on whose account.
    pool: Arc<Pool>,
    party: Party,
}

#[derive(Debug, Default)]
struct State {
    is_free: bool,
    closed: bool,
    threads: usize,
    idle: usize,
}

/// What a thread has while it carries out the requests of one message.
#[derive(Default)]
pub(crate) struct Worker {
    has_turn: AtomicBool,
    /// Bytes of the message, which are kept until it is carried out.
    pub(crate) message_len: AtomicUsize,
    /// Replies of a compound that are not sent yet.
    pub(crate) replies: Mutex<Vec<Reply>>,
    /// Starts a thread that takes the turn; none on a thread that never has it.
    start: Option<Box<dyn Fn(Pooled) + Send + Sync>>,
}

impl Turn {
    /// Returns a turn that nobody has. Threads come from `pool`: one for each of `waiting` requests, and one more.
    pub(crate) fn new(waiting: usize, pool: Arc<Pool>, party: Party) -> Self {
        Self {
            state: Mutex::default(),
            free: Condvar::new(),
            threads_max: waiting.saturating_add(1),
            pool,
            party,
        }
    }

    /// Lets somebody take it: the connection begins.
    pub(crate) fn begin(&self) {
        self.state.lock().is_free = true;
    }

    /// Counts a thread, which will [leave](Self::leave).
    pub(crate) fn enter(&self) {
        self.state.lock().threads += 1;
    }

    /// Counts a thread that has ended. Returns whether it was the last one.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.threads == 0
    }

    /// Lets nobody have it any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.free.notify_all();
    }

    /// Waits for the turn; `false` if the thread is not needed any more.
    pub(crate) fn take(&self, worker: &Worker) -> bool {
        let mut state = self.state.lock();
        if state.idle >= IDLE_MAX {
            return false;
        }
        state.idle += 1;
        while !state.is_free && !state.closed {
            self.free.wait(&mut state);
        }
        state.idle -= 1;
        if state.closed {
            return false;
        }
        state.is_free = false;
        worker.has_turn.store(true, Ordering::Relaxed);
        true
    }

    /// Gives the turn up and wakes a waiting thread; returns whether there was one. A thread may have
    /// begun to wait after the heir was chosen: then no new one is started.
    fn give(&self) -> bool {
        let mut state = self.state.lock();
        state.is_free = true;
        let is_awaited = state.idle > 0;
        drop(state);
        if is_awaited {
            self.free.notify_one();
        }
        is_awaited
    }

    /// Returns who the turn can be passed on to: a thread that waits for it, or one that can be started.
    fn heir(&self) -> Option<Heir> {
        let state = self.state.lock();
        if state.idle > 0 {
            return Some(Heir::Waits);
        }
        if state.threads >= self.threads_max {
            return None;
        }
        drop(state);
        self.pool.take(self.party).map(Heir::New)
    }
}

/// Who is given the turn.
enum Heir {
    Waits,
    New(Pooled),
}

impl Worker {
    /// Returns a thread that does not have the turn yet; `start` starts another like it.
    pub(crate) fn new(start: impl Fn(Pooled) + Send + Sync + 'static) -> Self {
        Self {
            start: Some(Box::new(start)),
            ..Self::default()
        }
    }

    /// Returns whether it has the turn.
    pub(crate) fn has_turn(&self) -> bool {
        self.has_turn.load(Ordering::Relaxed)
    }

    /// Passes the turn on, if this thread has it. `false` if it has to keep it:
    /// as many threads as may be are waiting already.
    pub(crate) fn pass(&self, turn: &Turn) -> bool {
        if !self.has_turn() {
            return true;
        }
        let Some(heir) = turn.heir() else {
            return false;
        };
        self.has_turn.store(false, Ordering::Relaxed);
        if let (false, Heir::New(pooled)) = (turn.give(), heir)
            && let Some(start) = &self.start
        {
            start(pooled);
        }
        true
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("has_turn", &self.has_turn)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use std::thread;

    fn turn(waiting: usize) -> Turn {
        let peer = IpAddr::from(Ipv4Addr::LOCALHOST);
        Turn::new(
            waiting,
            Arc::new(Pool::new(8, 8)),
            Party::of(peer, &Ok(None)),
        )
    }

    #[test]
    fn who_began_to_wait_after_the_heir_was_chosen_is_woken() {
        let turn = Arc::new(turn(8));
        let waits = |turn: &Arc<Turn>| {
            let turn = Arc::clone(turn);
            thread::spawn(move || turn.take(&Worker::default()))
        };
        // As many as wait at most: a new thread would leave.
        let threads = [(); IDLE_MAX].map(|()| waits(&turn));
        while turn.state.lock().idle < IDLE_MAX {
            thread::yield_now();
        }
        assert!(!turn.take(&Worker::default()));
        assert!(turn.give());
        // One has taken it; the others are let go.
        while turn.state.lock().idle == IDLE_MAX {
            thread::yield_now();
        }
        turn.close();
        let had: Vec<bool> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(had.iter().filter(|had| **had).count(), 1);
        assert!(!super::tests::turn(1).give(), "nobody waits");
    }
}

//! [`Turn`]: decides which thread of a connection has the turn.

use super::Reply;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use volary_session::{Party, Pool, Pooled};

/// The most threads that stay and wait for the turn.
const IDLE_MAX: usize = 2;

/// The turn of a connection. The thread that has it reads the next request.
#[derive(Debug)]
pub(crate) struct Turn {
    state: Mutex<State>,
    free: Condvar,
    threads_max: usize,
    /// The pool of threads beside the first one, and the party that they count for.
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

/// The state of a thread while it carries out the requests of a message.
#[derive(Default)]
pub(crate) struct Worker {
    has_turn: AtomicBool,
    /// Bytes of the message, which is kept until it is carried out.
    pub(crate) message_len: AtomicUsize,
    /// Replies of a compound that have not been sent yet.
    pub(crate) replies: Mutex<Vec<Reply>>,
    /// Starts a thread that takes the turn. `None` on a thread that never has the turn.
    start: Option<Box<dyn Fn(Pooled) + Send + Sync>>,
}

impl Turn {
    /// Returns a turn that no thread has. Threads come from `pool`: one for each of `waiting`
    /// requests, and one more.
    pub(crate) fn new(waiting: usize, pool: Arc<Pool>, party: Party) -> Self {
        Self {
            state: Mutex::default(),
            free: Condvar::new(),
            threads_max: waiting.saturating_add(1),
            pool,
            party,
        }
    }

    /// Makes the turn available, as the connection begins.
    pub(crate) fn begin(&self) {
        self.state.lock().is_free = true;
    }

    /// Counts a thread, which will call [`leave`](Self::leave).
    pub(crate) fn enter(&self) {
        self.state.lock().threads += 1;
    }

    /// Counts that a thread has ended. Returns whether it was the last one.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.threads == 0
    }

    /// Makes the turn unavailable for good.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.free.notify_all();
    }

    /// Waits for the turn. Returns `false` if the thread is no longer needed.
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

    /// Releases the turn and wakes a waiting thread. Returns whether there was one. A thread may
    /// have begun to wait after the heir was chosen. In that case, no new one is started.
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

    /// Returns the next holder of the turn: a thread that waits for it, or one that can be started.
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

/// The next holder of the turn.
enum Heir {
    Waits,
    New(Pooled),
}

impl Worker {
    /// Returns the state of a thread that does not have the turn yet. `start` starts another such
    /// thread.
    pub(crate) fn new(start: impl Fn(Pooled) + Send + Sync + 'static) -> Self {
        Self {
            start: Some(Box::new(start)),
            ..Self::default()
        }
    }

    /// Returns whether the thread has the turn.
    pub(crate) fn has_turn(&self) -> bool {
        self.has_turn.load(Ordering::Relaxed)
    }

    /// Passes the turn on, if this thread has it. Returns `false` if it must keep the turn, because
    /// no further thread is permitted.
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
        // There are as many waiting threads as permitted, so a new one would leave.
        let threads = [(); IDLE_MAX].map(|()| waits(&turn));
        while turn.state.lock().idle < IDLE_MAX {
            thread::yield_now();
        }
        assert!(!turn.take(&Worker::default()));
        assert!(turn.give());
        // One thread has taken the turn, and the others are released.
        while turn.state.lock().idle == IDLE_MAX {
            thread::yield_now();
        }
        turn.close();
        let had: Vec<bool> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(had.iter().filter(|had| **had).count(), 1);
        assert!(!super::tests::turn(1).give(), "nobody waits");
    }
}

//! The threads of a connection, and whose turn it is.
//!
//! The thread that has the turn reads a request and carries it out. Before a
//! request waits, or when it is a long one and more is on its way, its thread
//! passes the turn on to another and comes back for it when it is done.

use super::{Conn, dispatch};
use crate::conn::compound::Reply;
use crate::conn::frame::Frame;
use parking_lot::{Condvar, Mutex};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tracing::error;
use volary_session::Pooled;

/// Threads that stay to wait for the turn.
const IDLE_MAX: usize = 2;

/// The turn of a connection.
#[derive(Debug)]
pub(super) struct Turn {
    state: Mutex<State>,
    free: Condvar,
    threads_max: usize,
}

#[derive(Debug, Default)]
struct State {
    is_free: bool,
    closed: bool,
    threads: usize,
    idle: usize,
}

/// What a thread has while it carries out the requests of one message.
#[derive(Debug, Default)]
pub(super) struct Worker {
    has_turn: AtomicBool,
    /// Bytes of the message, which are kept until it is carried out.
    pub(super) message_len: AtomicUsize,
    /// Replies of a compound that are not sent yet.
    pub(super) replies: Mutex<Vec<Reply>>,
}

impl Turn {
    /// One with a thread for each of so many that wait, and one more.
    pub(super) fn new(waiting: usize) -> Self {
        Self {
            state: Mutex::default(),
            free: Condvar::new(),
            threads_max: waiting.saturating_add(1),
        }
    }

    /// Lets nobody have it any more.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.free.notify_all();
    }

    /// Waits for the turn; `false` if the thread is not needed any more.
    fn take(&self, worker: &Worker) -> bool {
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

    /// Who the turn can be passed on to: a thread that waits for it, or one that can be started.
    fn heir(&self, conn: &Conn) -> Option<Heir> {
        let state = self.state.lock();
        if state.idle > 0 {
            return Some(Heir::Waits);
        }
        if state.threads >= self.threads_max {
            return None;
        }
        drop(state);
        conn.server.threads.take(conn.party).map(Heir::New)
    }
}

/// Who is given the turn.
enum Heir {
    Waits,
    New(Pooled),
}

impl Worker {
    /// Passes the turn on, if this thread has it. `false` if it has to keep it:
    /// as many threads as may be are waiting already.
    pub(super) fn pass(&self, conn: &Arc<Conn>) -> bool {
        if !self.has_turn.load(Ordering::Relaxed) {
            return true;
        }
        let Some(heir) = conn.turn.heir(conn) else {
            return false;
        };
        self.has_turn.store(false, Ordering::Relaxed);
        if let (false, Heir::New(pooled)) = (conn.turn.give(), heir) {
            start(conn, Some(pooled));
        }
        true
    }
}

/// Starts a thread for the connection: its first, or an heir to the turn, which is from the pool.
fn start(conn: &Arc<Conn>, pooled: Option<Pooled>) {
    conn.turn.state.lock().threads += 1;
    let theirs = Arc::clone(conn);
    let name = "smb connection".to_owned();
    let started = thread::Builder::new().name(name).spawn(move || {
        work(&theirs);
        drop(pooled);
    });
    if started.is_err() {
        leave(conn);
        conn.close();
    }
}

/// Begins to serve a connection, on threads of its own.
pub(crate) fn begin(conn: &Arc<Conn>) {
    conn.turn.state.lock().is_free = true;
    start(conn, None);
}

/// Serves the connection. A panic is a fault of ours, and ends no more than the connection.
fn work(conn: &Arc<Conn>) {
    let served = panic::catch_unwind(AssertUnwindSafe(|| serve(conn)));
    if served.is_err() {
        error!(target: "SMB", address = %conn.peer, "caught panic");
        conn.close();
    }
    let left = panic::catch_unwind(AssertUnwindSafe(|| leave(conn)));
    if left.is_err() {
        error!(target: "SMB", address = %conn.peer, "caught panic");
        conn.server.forget(conn);
    }
}

fn serve(conn: &Arc<Conn>) {
    let worker = Arc::new(Worker::default());
    let mut frame = Vec::new();
    while conn.turn.take(&worker) {
        while worker.has_turn.load(Ordering::Relaxed) {
            let next = conn.frames.lock().next(conn, &mut frame);
            let Some(Frame { len, signer }) = next else {
                conn.close();
                break;
            };
            let message = &mut frame[..len];
            worker.message_len.store(len, Ordering::Relaxed);
            if dispatch::message(conn, &worker, message, signer.as_ref()).is_err() {
                conn.close();
                break;
            }
        }
    }
}

/// The last thread to leave ends what the connection has.
fn leave(conn: &Arc<Conn>) {
    let mut state = conn.turn.state.lock();
    state.threads -= 1;
    let is_last = state.threads == 0;
    drop(state);
    if is_last {
        conn.close();
        conn.end_logons();
        conn.server.forget(conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_began_to_wait_after_the_heir_was_chosen_is_woken() {
        let turn = Arc::new(Turn::new(8));
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
        assert!(!Turn::new(1).give(), "nobody waits");
    }
}

//! The threads of a connection.
//!
//! The thread that has the turn reads a request and carries it out. It passes the turn to another
//! thread before the request waits, or if the request is long and more has arrived. Afterwards, it
//! waits for the turn again.

use super::frame::Frame;
use super::{Conn, dispatch};
use crate::client::Worker;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use tracing::error;
use volary_session::Pooled;

/// Starts a thread for the connection: the first one, or one from the pool that takes the turn.
fn start(conn: &Arc<Conn>, pooled: Option<Pooled>) {
    conn.link.turn.enter();
    let theirs = Arc::clone(conn);
    let name = "smb connection".to_owned();
    let started = thread::Builder::new().name(name).spawn(move || {
        work(&theirs);
        drop(pooled);
    });
    if started.is_err() {
        leave(conn);
        conn.link.close();
    }
}

/// Begins to serve a connection with its own threads.
pub(crate) fn begin(conn: &Arc<Conn>) {
    conn.link.turn.begin();
    start(conn, None);
}

/// Serves the connection. A panic is a bug, and ends only this connection.
fn work(conn: &Arc<Conn>) {
    let served = panic::catch_unwind(AssertUnwindSafe(|| serve(conn)));
    if served.is_err() {
        error!(target: "SMB", address = %conn.link.peer, "caught panic");
        conn.link.close();
    }
    let left = panic::catch_unwind(AssertUnwindSafe(|| leave(conn)));
    if left.is_err() {
        error!(target: "SMB", address = %conn.link.peer, "caught panic");
        conn.register.forget(conn);
    }
}

fn serve(conn: &Arc<Conn>) {
    let theirs = Arc::clone(conn);
    let worker = Arc::new(Worker::new(move |pooled| start(&theirs, Some(pooled))));
    let mut frame = Vec::new();
    while conn.link.turn.take(&worker) {
        while worker.has_turn() {
            let next = conn
                .frames
                .lock()
                .next(&conn.link, &conn.members, &mut frame);
            let Some(Frame { len, signer }) = next else {
                conn.link.close();
                break;
            };
            let message = &mut frame[..len];
            worker.message_len.store(len, Ordering::Relaxed);
            if dispatch::message(conn, &worker, message, signer.as_ref()).is_err() {
                conn.link.close();
                break;
            }
        }
    }
}

/// Ends the connection's sessions when the last thread leaves.
fn leave(conn: &Arc<Conn>) {
    if conn.link.turn.leave() {
        conn.link.close();
        conn.end_logons();
        conn.register.forget(conn);
    }
}

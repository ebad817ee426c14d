//! One connection with many callers, one of which reads at a time.
//!
//! A caller that waits for a reply takes the turn at reading if nobody has it. It hands received
//! replies to the callers that wait for them, and passes the turn on once its own reply has come.
//! So a single caller reads its own reply without a thread switch, and the connection needs no
//! thread of its own.

use crate::timer;
use crate::wire::record::{Record, Records};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use volary_core::Cancel;

/// How many unexpected replies in a row are accepted: those to calls that were given up come late.
const STRAYS_MAX: u32 = 1024;

pub(crate) struct Conn {
    socket: TcpStream,
    /// Our own port.
    pub(crate) port: Option<u16>,
    /// Locked by the thread that sends.
    sending: Mutex<()>,
    state: Mutex<State>,
    /// Locked by the thread that reads.
    records: Mutex<Records>,
    /// The number of calls that wait.
    pub(crate) busy: AtomicUsize,
    /// Whether a call was answered on it.
    pub(crate) is_proven: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u32, Waiter>,
    is_read: bool,
    strays: u32,
    broken: Option<String>,
}

struct Waiter {
    reply: Option<Record>,
    told: Arc<Condvar>,
}

/// The reason why there is no reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The connection cannot be used any more.
    Broken(String),
    /// The reply did not come in time.
    Late,
    /// The caller has cancelled the call.
    Cancelled,
}

impl Conn {
    pub(crate) fn new(socket: TcpStream) -> Self {
        let port = socket.local_addr().ok().map(|at| at.port());
        Self {
            socket,
            port,
            sending: Mutex::new(()),
            state: Mutex::default(),
            records: Mutex::new(Records::new()),
            busy: AtomicUsize::new(0),
            is_proven: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state.lock().broken.is_some()
    }

    /// Ends the connection, and wakes all waiting callers.
    pub(crate) fn end(&self, why: impl Into<String>) {
        let mut state = self.state.lock();
        self.end_locked(&mut state, why.into());
    }

    fn end_locked(&self, state: &mut State, why: String) {
        state.broken.get_or_insert(why);
        crate::server::socket::forsake(&self.socket);
        // The server may have closed it already.
        let _ = self.socket.shutdown(Shutdown::Both);
        for waiter in state.waiting.values() {
            waiter.told.notify_one();
        }
    }

    /// Sends a call, a complete record with its fragment header, and waits for the reply with this
    /// number.
    pub(crate) fn call(
        &self,
        xid: u32,
        record: &[u8],
        until: Instant,
        cancel: Option<&Cancel>,
    ) -> Result<Record, NoReply> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let told = Arc::new(Condvar::new());
        let waiter = Waiter {
            reply: None,
            told: Arc::clone(&told),
        };
        self.state.lock().waiting.insert(xid, waiter);
        let done = self
            .send(record, until)
            .and_then(|()| self.wait(xid, &told, until, cancel));
        // Before the turn is passed, so that it does not go to a caller that no longer waits.
        self.state.lock().waiting.remove(&xid);
        self.pass_turn();
        self.busy.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// Takes the buffer of a reply back.
    pub(crate) fn give_back(&self, record: Record) {
        if let Some(mut records) = self.records.try_lock() {
            records.give_back(record);
        }
    }

    fn send(&self, record: &[u8], until: Instant) -> Result<(), NoReply> {
        let sending = self.sending.lock();
        let mut left = record;
        while !left.is_empty() {
            match (&self.socket).write(left) {
                Ok(0) => return Err(self.broke("it was closed")),
                Ok(len) => left = left.get(len..).unwrap_or_default(),
                Err(e) if is_wait(&e) && timer::now() < until => {
                    // The server may be waiting for us to read.
                    self.read_if_free();
                }
                Err(e) => return Err(self.broke(&e.to_string())),
            }
        }
        drop(sending);
        Ok(())
    }

    fn broke(&self, why: &str) -> NoReply {
        self.end(why);
        NoReply::Broken(why.to_owned())
    }

    fn wait(
        &self,
        xid: u32,
        told: &Condvar,
        until: Instant,
        cancel: Option<&Cancel>,
    ) -> Result<Record, NoReply> {
        let mut state = self.state.lock();
        loop {
            let waiter = state.waiting.get_mut(&xid);
            if let Some(reply) = waiter.and_then(|w| w.reply.take()) {
                return Ok(reply);
            }
            if let Some(why) = &state.broken {
                return Err(NoReply::Broken(why.clone()));
            }
            if cancel.is_some_and(Cancel::is_set) {
                return Err(NoReply::Cancelled);
            }
            if timer::now() >= until {
                return Err(NoReply::Late);
            }
            if state.is_read {
                let look_up = timer::now() + crate::server::socket::LOOK_UP;
                told.wait_until(&mut state, look_up.min(until));
            } else {
                state = self.read_one(state);
            }
        }
    }

    /// Takes the turn at reading, and delivers one record, if one comes in time. If the read fails,
    /// ends the connection.
    fn read_one<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.is_read = true;
        drop(state);
        let read = self.records.lock().read(&mut &self.socket);
        let mut state = self.state.lock();
        state.is_read = false;
        match read {
            Ok(record) => self.deliver(&mut state, record),
            Err(e) if is_wait(&e) => {}
            Err(e) => self.end_locked(&mut state, words(&e)),
        }
        state
    }

    fn read_if_free(&self) {
        let state = self.state.lock();
        if !state.is_read && state.broken.is_none() {
            drop(self.read_one(state));
        }
        self.pass_turn();
    }

    /// Delivers a reply to the caller that waits for it.
    fn deliver(&self, state: &mut State, record: Record) {
        let xid = record
            .bytes()
            .first_chunk::<4>()
            .map(|x| u32::from_be_bytes(*x));
        let waiter = xid.and_then(|xid| state.waiting.get_mut(&xid));
        match waiter {
            Some(waiter) if waiter.reply.is_none() => {
                waiter.reply = Some(record);
                waiter.told.notify_one();
                state.strays = 0;
            }
            _ => {
                state.strays += 1;
                if state.strays > STRAYS_MAX {
                    let why = "the server answers what nobody asked";
                    self.end_locked(state, why.to_owned());
                }
            }
        }
    }

    /// Passes the turn at reading to a caller that still waits.
    fn pass_turn(&self) {
        let state = self.state.lock();
        if state.is_read {
            return;
        }
        let next = state.waiting.values().find(|w| w.reply.is_none());
        if let Some(next) = next {
            next.told.notify_one();
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // Nobody waits for a reply any more; its port should be free again at once.
        crate::server::socket::forsake(&self.socket);
    }
}

fn is_wait(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn words(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    /// Returns a call or a reply that consists only of its number.
    fn record(xid: u32) -> [u8; 8] {
        let head = volary_rpc::numbers::LAST_FRAGMENT | 4;
        let mut record = [0; 8];
        record[..4].copy_from_slice(&head.to_be_bytes());
        record[4..].copy_from_slice(&xid.to_be_bytes());
        record
    }

    /// Waits for two calls at a time, and answers them one after the other.
    #[expect(clippy::disallowed_methods, reason = "a server that takes a while")]
    fn answer(mut socket: TcpStream, rounds: usize) {
        for _ in 0..rounds {
            let mut calls = [[0; 8]; 2];
            for call in &mut calls {
                socket.read_exact(call).unwrap();
            }
            for call in calls {
                // The other caller waits by now, and one of the two reads.
                std::thread::sleep(Duration::from_millis(2));
                socket.write_all(&call).unwrap();
            }
        }
    }

    /// A caller that has its reply must not pass the turn to itself. The other would find its own
    /// reply only at its next wake-up, a quarter of a second later.
    #[test]
    fn the_turn_goes_to_one_who_waits_still() {
        const ROUNDS: usize = 24;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        // Without this, the second of two short replies would wait for the acknowledgement of the
        // first.
        theirs.set_nodelay(true).unwrap();
        socket.set_nodelay(true).unwrap();
        let conn = Conn::new(socket);
        // A caller that is done must not call again, and read the other's reply.
        let both = std::sync::Barrier::new(2);
        let began = timer::now();
        let until = began + Duration::from_secs(60);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(theirs, ROUNDS));
            for side in [0, 1 << 16] {
                let (conn, both) = (&conn, &both);
                scope.spawn(move || {
                    for round in 0..ROUNDS as u32 {
                        let xid = side + round;
                        let reply = conn.call(xid, &record(xid), until, None).unwrap();
                        assert_eq!(reply.bytes(), xid.to_be_bytes());
                        both.wait();
                    }
                });
            }
        });
        let took = timer::now() - began;
        assert!(took < crate::server::socket::LOOK_UP * 4, "{took:?}");
    }
}

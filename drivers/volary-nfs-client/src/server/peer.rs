//! A server's port: a few connections, made on demand, and calls that outlive them.
//!
//! If a connection ends before a call has its reply, the call is sent again on another one. It
//! keeps its number and its source port, by which the server recognizes it (RFC 1813, section 4.4).
//! If the server is silent for half of the remaining time, another connection is tried; past the
//! whole time the call answers `Io`. From then on the server counts as gone: calls fail as soon as
//! a connection attempt fails, until one succeeds.

use crate::fail;
use crate::server::conn::{Conn, NoReply};
use crate::server::socket::connect_to;
use crate::timer;
use crate::wire::record::Record;
use parking_lot::{Condvar, Mutex};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use volary_core::{Cancel, Cred, Error, Kind, Result};
use volary_rpc::caller::{self, Reply};
use volary_rpc::numbers::{LAST_FRAGMENT, NFS, NULL, Program};
use volary_rpc::{Input, Output, count};

/// The first and the longest delay between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// The longest call, in bytes, that a server accepts on a new connection.
const SHORT: usize = 32 << 10;
/// The least time that a server may be silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How to call a server.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// How long a call may take.
    pub(crate) timeout: Duration,
    /// Connections at a time.
    pub(crate) connections: usize,
    /// Whether to call from a port that only root may use.
    pub(crate) reserved: bool,
    /// The name of this host in credentials.
    pub(crate) machine: Arc<[u8]>,
}

/// One port of a server.
pub(crate) struct Peer {
    at: SocketAddr,
    way: Way,
    conns: Mutex<Vec<Arc<Conn>>>,
    /// How many connections have been made.
    made: AtomicU32,
    xid: AtomicU32,
    /// Whether a call had no reply in time, and none has come since.
    is_gone: AtomicBool,
    /// Whether the connections were closed for good.
    is_ended: AtomicBool,
    pause: (Mutex<()>, Condvar),
}

/// A call: its program, procedure, caller and cancel flag.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) program: Program,
    pub(crate) procedure: u32,
    pub(crate) cred: Option<&'a Cred>,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl Call<'_> {
    /// Returns a call without credentials, which nobody can cancel.
    pub(crate) fn plain(program: Program, procedure: u32) -> Self {
        Self {
            program,
            procedure,
            cred: None,
            cancel: None,
        }
    }
}

/// A reply to a call that was executed.
pub(crate) struct Done {
    conn: Arc<Conn>,
    record: Option<Record>,
    /// The offset of the results.
    start: usize,
    /// Whether the call was sent more than once.
    pub(crate) is_resent: bool,
}

impl Done {
    /// Returns the procedure's results.
    pub(crate) fn results(&self) -> Input<'_> {
        let bytes = self.record.as_ref().map(Record::bytes);
        Input::new(bytes.and_then(|b| b.get(self.start..)).unwrap_or_default())
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.conn.give_back(record);
        }
    }
}

impl Peer {
    /// Makes a peer without connections. `seed` is the first number for calls.
    pub(crate) fn new(at: SocketAddr, way: Way, seed: u32) -> Self {
        Self {
            at,
            way,
            conns: Mutex::default(),
            made: AtomicU32::new(0),
            xid: AtomicU32::new(seed),
            is_gone: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            pause: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Makes calls fail at once if the first connection attempt fails.
    pub(crate) fn hurry(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Closes all connections; waiting calls and later ones answer `Stale`.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        for conn in self.conns.lock().drain(..) {
            conn.end("it was detached");
        }
        self.pause.1.notify_all();
    }

    /// Makes a call whose arguments `write` writes.
    ///
    /// # Errors
    /// `Unsupported` if the server lacks the program or procedure; `Access` if it refuses the
    /// credentials; `Interrupted`; `Io` if no reply came in time, or the server failed; `Corrupt`
    /// for a malformed reply.
    pub(crate) fn call(&self, call: &Call<'_>, write: impl FnOnce(&mut Output)) -> Result<Done> {
        let xid = self.xid.fetch_add(1, Ordering::Relaxed);
        let mut out = Output::new();
        out.u32(0);
        let cred = call.cred.map(|cred| (cred, &*self.way.machine));
        caller::call(&mut out, xid, call.program, call.procedure, cred);
        write(&mut out);
        out.patch(0, LAST_FRAGMENT | count(out.len().saturating_sub(4)));
        let (conn, record, is_resent) = self.exchange(xid, out.bytes(), call.cancel)?;
        let len = record.bytes().len();
        let start = match caller::reply(record.bytes()).map_err(fail::garbage)?.1 {
            Reply::Done(results) => len.saturating_sub(results.rest().len()),
            Reply::Unavailable => return Err(Kind::Unsupported.into()),
            Reply::Denied => return Err(self.denied()),
            Reply::Garbage => return Err(fail::io("the server could not read the call")),
            Reply::Failed => return Err(fail::io("the server failed at the call")),
        };
        Ok(Done {
            conn,
            record: Some(record),
            start,
            is_resent,
        })
    }

    fn denied(&self) -> Error {
        let words = format!("{}: the server refuses AUTH_SYS credentials", self.at);
        Error::note(Kind::Access, words)
    }

    /// Sends a record until a reply comes.
    fn exchange(
        &self,
        xid: u32,
        record: &[u8],
        cancel: Option<&Cancel>,
    ) -> Result<(Arc<Conn>, Record, bool)> {
        let begun = timer::now();
        let until = begun + self.way.timeout;
        let mut is_resent = false;
        let mut rest = RETRY;
        let mut port = None;
        loop {
            let conn = self.conn(port, until, cancel)?;
            port = conn.port;
            // Wait for half of the remaining time; the rest is for another attempt.
            let now = timer::now();
            let half = until.saturating_duration_since(now) / 2;
            let patience = until.min(now + half.max(PATIENCE));
            match self.call_on(&conn, xid, record, patience, cancel) {
                Ok(reply) => {
                    self.is_gone.store(false, Ordering::Relaxed);
                    return Ok((conn, reply, is_resent));
                }
                Err(NoReply::Cancelled) => return Err(Kind::Interrupted.into()),
                Err(NoReply::Late) => conn.end("the server says nothing"),
                Err(NoReply::Broken(why)) if timer::now() >= until => return Err(self.gone(&why)),
                Err(NoReply::Broken(_)) if is_resent => {
                    // A server that closes each connection must not be called in a busy loop.
                    self.rest(rest);
                    rest = (rest * 2).min(RETRY_MAX);
                }
                Err(NoReply::Broken(_)) => {}
            }
            if timer::now() >= until {
                return Err(self.gone("no answer"));
            }
            is_resent = true;
        }
    }

    /// Makes one call on one connection. A server may accept only short calls on a new connection,
    /// so a NULL call precedes a long one.
    fn call_on(
        &self,
        conn: &Conn,
        xid: u32,
        record: &[u8],
        until: Instant,
        cancel: Option<&Cancel>,
    ) -> std::result::Result<Record, NoReply> {
        if record.len() > SHORT && !conn.is_proven.load(Ordering::Relaxed) {
            let xid = self.xid.fetch_add(1, Ordering::Relaxed);
            let mut out = Output::new();
            out.u32(0);
            caller::call(&mut out, xid, NFS, NULL, None);
            out.patch(0, LAST_FRAGMENT | count(out.len().saturating_sub(4)));
            let reply = conn.call(xid, out.bytes(), until, cancel)?;
            conn.give_back(reply);
        }
        let reply = conn.call(xid, record, until, cancel)?;
        conn.is_proven.store(true, Ordering::Relaxed);
        Ok(reply)
    }

    fn gone(&self, why: &str) -> Error {
        self.is_gone.store(true, Ordering::Relaxed);
        let secs = self.way.timeout.as_secs();
        fail::io(format!("{}: no reply in {secs} s: {why}", self.at))
    }

    /// Returns the least busy connection, or a new one if all are busy and more are allowed. For a
    /// call that was sent before, returns one from the same `port`.
    fn conn(
        &self,
        port: Option<u16>,
        until: Instant,
        cancel: Option<&Cancel>,
    ) -> Result<Arc<Conn>> {
        let mut rest = RETRY;
        loop {
            if self.is_ended.load(Ordering::SeqCst) {
                return Err(Kind::Stale.into());
            }
            let found = match port {
                Some(_) => self.conn_from(port),
                None => self.free_conn(),
            };
            if let Some(conn) = found {
                return Ok(conn);
            }
            let tried = timer::now() + CONNECT;
            let made = match connect_to(self.at, port, self.way.reserved, tried.min(until)) {
                Ok(socket) => return Ok(self.add(Conn::new(socket))),
                Err(e) => e,
            };
            // Another thread may have made a connection that works.
            if let Some(conn) = self.least_busy() {
                return Ok(conn);
            }
            if self.is_gone.load(Ordering::Relaxed) || timer::now() + rest >= until {
                self.is_gone.store(true, Ordering::Relaxed);
                return Err(fail::socket("cannot connect to", self.at, &made));
            }
            if cancel.is_some_and(Cancel::is_set) {
                return Err(Kind::Interrupted.into());
            }
            self.rest(rest);
            rest = (rest * 2).min(RETRY_MAX);
        }
    }

    /// Waits for this time, or until the connections are closed.
    pub(crate) fn rest(&self, time: Duration) {
        let mut held = self.pause.0.lock();
        if !self.is_ended.load(Ordering::SeqCst) {
            self.pause.1.wait_for(&mut held, time);
        }
    }

    /// Returns how many connections have been made: while the number stays the same, the server has
    /// not restarted.
    pub(crate) fn connections(&self) -> u32 {
        self.made.load(Ordering::SeqCst)
    }

    fn add(&self, conn: Conn) -> Arc<Conn> {
        self.made.fetch_add(1, Ordering::SeqCst);
        let conn = Arc::new(conn);
        let mut conns = self.conns.lock();
        if self.is_ended.load(Ordering::SeqCst) {
            conn.end("it was detached");
        } else if conns.len() < self.way.connections {
            conns.push(Arc::clone(&conn));
        }
        conn
    }

    /// Returns an idle connection, or the least busy one if no more are allowed.
    fn free_conn(&self) -> Option<Arc<Conn>> {
        let mut conns = self.conns.lock();
        conns.retain(|conn| !conn.is_broken());
        let idle = conns.iter().find(|c| c.busy.load(Ordering::Relaxed) == 0);
        if idle.is_none() && conns.len() < self.way.connections {
            return None;
        }
        let idle = idle.or_else(|| conns.iter().min_by_key(|c| c.busy.load(Ordering::Relaxed)));
        idle.cloned()
    }

    fn conn_from(&self, port: Option<u16>) -> Option<Arc<Conn>> {
        let mut conns = self.conns.lock();
        conns.retain(|conn| !conn.is_broken());
        conns.iter().find(|conn| conn.port == port).cloned()
    }

    fn least_busy(&self) -> Option<Arc<Conn>> {
        let mut conns = self.conns.lock();
        conns.retain(|conn| !conn.is_broken());
        let least = conns.iter().min_by_key(|c| c.busy.load(Ordering::Relaxed));
        least.cloned()
    }
}

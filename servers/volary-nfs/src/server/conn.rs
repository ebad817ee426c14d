//! One connection: its threads take turns at reading calls.
//!
//! One thread at a time has the turn. It reads a call. If more data is here already, it passes the
//! turn on before it executes the call, so that another thread executes the next one in parallel.
//! Otherwise it keeps the turn: a client that makes one call at a time would have to wait for a
//! thread switch. If such a call takes long, a watching thread takes the turn away after some
//! milliseconds.
//!
//! Answers go out in the order in which they are ready.

use super::dispatch::{Answer, Way};
use super::options::Limits;
use super::programs::Programs;
use crate::rpc::record::{Patience, Records};
use crate::timer;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tracing::error;
use volary_rpc::Output;
use volary_session::{Guest, Linger, Party, Pool, Pooled, is_this_host};

/// The longest record: the largest WRITE, and its header.
const RECORD_MAX: usize = (1 << 20) + (4 << 10);
/// The longest record until a call was accepted.
const FIRST_RECORD_MAX: usize = 64 << 10;
/// How often a reading thread wakes up although no data comes.
const LOOK_UP: Duration = Duration::from_secs(2);
/// Roughly how long a call may take before its thread loses the turn.
const TURN: Duration = Duration::from_millis(2);
/// A thread with nothing to do ends after this long.
const SPARE: Duration = Duration::from_secs(20);
/// Buffers longer than this are freed when no data comes.
const KEEP: usize = 64 << 10;

/// One connection.
pub(crate) struct Conn {
    programs: Arc<Programs>,
    limits: Limits,
    way: Way,
    party: Party,
    /// The pool that threads beside the first one are taken from.
    pool: Arc<Pool>,
    socket: TcpStream,
    /// Locked by the thread that reads.
    records: Mutex<Records>,
    linger: Linger,
    /// Locked by the thread that writes an answer.
    answering: Mutex<()>,
    crew: Mutex<Crew>,
    /// For the threads that wait for the turn.
    turned: Condvar,
    /// For the thread that watches.
    watch: Condvar,
    /// Whether a call was accepted.
    proven: AtomicBool,
    began: Instant,
    /// The number of calls in progress.
    busy: AtomicUsize,
}

struct Crew {
    turn: Turn,
    /// Counts the calls executed while keeping the turn.
    calls: u64,
    /// Threads that wait for the turn, apart from the watching one.
    waiting: usize,
    watcher: Watcher,
    threads: Vec<JoinHandle<()>>,
    ended: bool,
}

/// The state of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Free,
    /// A thread reads.
    Reading,
    /// A thread executes a call and has kept the turn.
    Kept,
}

/// The state of the thread that watches for calls that take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watcher {
    Nobody,
    /// Checks every [`TURN`].
    Awake,
    /// No calls come: waits to be notified.
    Asleep,
}

/// The buffers that a thread keeps from call to call.
#[derive(Default)]
struct Buffers {
    record: Vec<u8>,
    out: Output,
}

impl Conn {
    /// Takes over a connection, and starts its first thread.
    ///
    /// # Errors
    /// Those of the socket.
    pub(crate) fn start(
        programs: Arc<Programs>,
        limits: Limits,
        party: Party,
        pool: Arc<Pool>,
        way: Way,
        socket: TcpStream,
    ) -> io::Result<Arc<Self>> {
        socket.set_nodelay(true)?;
        if is_this_host(way.peer.ip()) {
            send_at_once(&socket);
        }
        socket.set_read_timeout(Some(LOOK_UP))?;
        socket.set_write_timeout(Some(limits.call))?;
        let conn = Arc::new(Self {
            programs,
            limits,
            way,
            party,
            pool,
            socket,
            records: Mutex::new(Records::new()),
            linger: Linger::new(timer::now),
            answering: Mutex::new(()),
            crew: Mutex::new(Crew {
                turn: Turn::Free,
                calls: 0,
                waiting: 0,
                watcher: Watcher::Nobody,
                threads: Vec::new(),
                ended: false,
            }),
            turned: Condvar::new(),
            watch: Condvar::new(),
            proven: AtomicBool::new(false),
            began: timer::now(),
            busy: AtomicUsize::new(0),
        });
        conn.spawn(&mut conn.crew.lock(), None)?;
        Ok(conn)
    }

    /// Returns the client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.way.peer.ip().to_canonical()
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.crew.lock().ended
    }

    /// Ends the connection; calls in progress are finished.
    pub(crate) fn end(&self) {
        self.crew.lock().ended = true;
        // The client may have closed it already.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.turned.notify_all();
        self.watch.notify_all();
    }

    /// Ends the connection and waits for its threads, at the latest until `until`.
    pub(crate) fn join(&self, until: Instant) {
        self.end();
        let threads = std::mem::take(&mut self.crew.lock().threads);
        for thread in threads {
            while !thread.is_finished() && timer::now() < until {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A panic was counted when it happened.
                let _ = thread.join();
            }
        }
    }

    /// Starts a thread: the first one, or one from the pool (`beside`).
    fn spawn(self: &Arc<Self>, crew: &mut Crew, beside: Option<Pooled>) -> io::Result<()> {
        crew.threads.retain(|thread| !thread.is_finished());
        let conn = Arc::clone(self);
        let thread = Builder::new().name("nfs".into());
        let work = move || {
            conn.work();
            drop(beside);
        };
        crew.threads.push(thread.spawn(work)?);
        Ok(())
    }

    /// Starts another thread, if the pool has one left.
    fn spawn_beside(self: &Arc<Self>, crew: &mut Crew) {
        if let Some(beside) = self.pool.take(self.party) {
            // If that fails, the existing threads go on alone.
            let _ = self.spawn(crew, Some(beside));
        }
    }

    fn work(self: &Arc<Self>) {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let mut buffers = Buffers::default();
            while self.take_turn(&mut buffers) {
                match self.turns(&mut buffers) {
                    Ok(true) => {}
                    // Errors of the connection are the client's own concern, and are not logged.
                    Ok(false) | Err(_) => return self.end(),
                }
            }
        }));
        // A panic is a defect of this server; it ends only this connection.
        if worked.is_err() {
            error!(target: "NFS", address = %self.address(), "caught panic");
            self.end();
        }
    }

    /// Reads and executes calls for as long as it has the turn. Returns false at the end of the
    /// connection.
    fn turns(self: &Arc<Self>, buffers: &mut Buffers) -> io::Result<bool> {
        loop {
            let mut records = self.records.lock();
            let Buffers { record, out } = &mut *buffers;
            let patience = self.patience();
            let idle = |record: &mut Vec<u8>| {
                out.shrink(KEEP);
                record.truncate(KEEP);
                record.shrink_to_fit();
                self.look_up();
            };
            if !records.has_more() {
                self.linger.end_on(&self.socket);
            }
            let len = records.read(&mut &self.socket, &patience, record, idle)?;
            let Some(len) = len else { return Ok(false) };
            self.linger.begin();
            let more = records.has_more();
            drop(records);
            let record = record.get(..len).unwrap_or_default();
            let kept = if more {
                self.pass_turn();
                None
            } else {
                Some(self.keep_turn())
            };
            out.clear();
            self.busy.fetch_add(1, Ordering::Relaxed);
            let answered = self.answer(record, out);
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if !answered? {
                return Ok(false);
            }
            if let Some(call) = kept
                && self.has_kept(call)
            {
                continue;
            }
            return Ok(true);
        }
    }

    fn patience(&self) -> Patience {
        if self.proven.load(Ordering::Relaxed) {
            return Patience {
                idle: self.limits.idle,
                record: self.limits.call,
                len_max: RECORD_MAX,
            };
        }
        let left = self.limits.first_call.saturating_sub(self.began.elapsed());
        Patience {
            idle: left,
            record: left,
            len_max: FIRST_RECORD_MAX,
        }
    }

    /// Cleans up after a while without data.
    fn look_up(&self) {
        let mut crew = self.crew.lock();
        crew.threads.retain(|thread| !thread.is_finished());
    }

    /// Executes one call. Returns false if the connection sends garbage.
    fn answer(&self, record: &[u8], out: &mut Output) -> io::Result<bool> {
        const LAST: u32 = 1 << 31;
        out.u32(0);
        match self.programs.answer(&self.way, record, out) {
            Answer::Accepted => self.proven.store(true, Ordering::Relaxed),
            Answer::Refused => {}
            Answer::Nothing => return Ok(true),
            Answer::Garbage => return Ok(false),
        }
        let len = u32::try_from(out.len() - 4).unwrap_or(0);
        out.patch(0, LAST | len);
        let _answering = self.answering.lock();
        (&self.socket).write_all(out.bytes())?;
        Ok(true)
    }

    /// Waits for the turn. Returns false if the connection has ended, or this thread is not needed.
    fn take_turn(&self, buffers: &mut Buffers) -> bool {
        let mut crew = self.crew.lock();
        loop {
            if crew.ended {
                return false;
            }
            if crew.turn == Turn::Free {
                crew.turn = Turn::Reading;
                return true;
            }
            if crew.watcher == Watcher::Nobody {
                self.watch(&mut crew, buffers);
                continue;
            }
            crew.waiting += 1;
            let surplus = self.turned.wait_for(&mut crew, SPARE).timed_out();
            crew.waiting -= 1;
            if surplus && crew.turn != Turn::Free {
                return false;
            }
        }
    }

    /// Watches until the turn is free, and takes it away from a thread that keeps it too long.
    fn watch(&self, crew: &mut MutexGuard<'_, Crew>, buffers: &mut Buffers) {
        let mut quiet = false;
        loop {
            let (turn, calls) = (crew.turn, crew.calls);
            if quiet {
                crew.watcher = Watcher::Asleep;
                *buffers = Buffers::default();
                self.watch.wait(crew);
            } else {
                crew.watcher = Watcher::Awake;
                self.watch.wait_for(crew, TURN);
            }
            let same = crew.turn == turn && crew.calls == calls;
            if same && turn == Turn::Kept {
                crew.turn = Turn::Free;
            }
            if crew.ended || crew.turn == Turn::Free {
                break;
            }
            quiet = same && turn == Turn::Reading && !quiet;
        }
        crew.watcher = Watcher::Nobody;
        // Another thread watches from now on.
        self.turned.notify_one();
    }

    fn pass_turn(self: &Arc<Self>) {
        let mut crew = self.crew.lock();
        crew.turn = Turn::Free;
        if crew.waiting > 0 {
            self.turned.notify_one();
        } else if crew.watcher != Watcher::Nobody {
            self.watch.notify_one();
        } else if crew.threads.len() < self.limits.threads {
            self.spawn_beside(&mut crew);
        }
    }

    /// Keeps the turn during a call; returns the call's number.
    fn keep_turn(self: &Arc<Self>) -> u64 {
        let mut crew = self.crew.lock();
        crew.turn = Turn::Kept;
        crew.calls += 1;
        if crew.watcher == Watcher::Asleep {
            crew.watcher = Watcher::Awake;
            self.watch.notify_one();
        } else if crew.watcher == Watcher::Nobody && crew.waiting == 0 && crew.threads.len() < 2 {
            // Without a second thread nobody watches, and calls are executed one at a time.
            self.spawn_beside(&mut crew);
        }
        crew.calls
    }

    /// Returns whether the thread still has the turn that it kept during a call.
    fn has_kept(&self, call: u64) -> bool {
        let mut crew = self.crew.lock();
        let kept = crew.turn == Turn::Kept && crew.calls == call && !crew.ended;
        if kept {
            crew.turn = Turn::Reading;
        }
        kept
    }
}

impl Guest for Conn {
    fn party(&self) -> Party {
        self.party
    }

    /// Returns whether a call was accepted.
    fn is_known(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }
}

/// Sets a congestion control without pacing. Nobody else uses the path to a client on this host, so
/// measuring and pacing it (BBR) only slows down large answers.
fn send_at_once(socket: &TcpStream) {
    // A system without this algorithm keeps its default.
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

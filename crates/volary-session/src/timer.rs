//! The commit timer: what was acknowledged does not stay undurable for long.

use crate::caller::NEVER;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use volary_core::{Call, Cred, Ctx, Error, Fs, Kind, Layer, Op, Result, Time};

/// After so many bytes are written, changes are made durable before their time.
const UNSYNCED_MAX: u64 = 256 << 20;
/// How long is waited at least before a commit that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How long the end waits for a commit that is under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread that commits. It ends when this is stopped or dropped.
pub(crate) struct Timer {
    unsynced: Arc<Unsynced>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread needs to know of a volume.
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) within: Duration,
    pub(crate) clock: fn() -> Time,
    pub(crate) failed: fn(&str, &Error),
}

/// What was changed since the last sync began.
#[derive(Default)]
struct Unsynced {
    changed: AtomicBool,
    bytes: AtomicU64,
    state: Mutex<State>,
    /// There is a first change, or too many bytes, or it ends.
    woken: Condvar,
    gone: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    gone: bool,
}

impl Unsynced {
    fn note(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_full = before < UNSYNCED_MAX && self.has_too_much();
        if !self.changed.swap(true, Ordering::AcqRel) || is_full {
            // The thread is before its look, or waits.
            drop(self.state.lock());
            self.woken.notify_one();
        }
    }

    fn take(&self) -> bool {
        self.bytes.store(0, Ordering::Relaxed);
        self.changed.swap(false, Ordering::AcqRel)
    }

    fn has_too_much(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= UNSYNCED_MAX
    }

    /// Waits for changes, and until their time has come; false at the end.
    fn wait(&self, state: &mut MutexGuard<'_, State>, within: Duration) -> bool {
        loop {
            if state.stopped {
                return false;
            }
            if !self.changed.load(Ordering::Acquire) {
                self.woken.wait(state);
                continue;
            }
            if self.has_too_much() {
                return true;
            }
            // Who is woken before the time looks anew: somebody has synced, and this is
            // the first change after that.
            let waited = self.woken.wait_for(state, within);
            if waited.timed_out() && self.changed.load(Ordering::Acquire) {
                return !state.stopped;
            }
        }
    }
}

impl Timer {
    /// Commits what goes through the file system that is given back.
    pub(crate) fn start(below: Fs, how: Timed) -> (Fs, Self) {
        let unsynced = Arc::new(Unsynced::default());
        let noted: Fs = Arc::new(Noted {
            below,
            unsynced: Arc::clone(&unsynced),
        });
        let (fs, shared) = (Arc::clone(&noted), Arc::clone(&unsynced));
        let (name, failed) = (how.name.clone(), how.failed);
        let thread = thread::Builder::new().name("volary-commit".into());
        let thread = thread.spawn(move || {
            let _gone = Gone(Arc::clone(&shared));
            commit_in_time(&fs, &shared, &how);
        });
        if let Err(e) = &thread {
            let words = format!("cannot start a thread that commits: {e}");
            failed(&name, &Error::note(Kind::Busy, words));
        }
        let timer = Self {
            unsynced,
            thread: Mutex::new(thread.ok()),
        };
        (noted, timer)
    }

    /// Notes a change that no operation tells of: of what an open leaves at its end.
    pub(crate) fn note(&self) {
        self.unsynced.note(0);
    }

    /// Ends the thread. A commit that is under way is waited for, unless its device is stuck.
    pub(crate) fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        let mut state = self.unsynced.state.lock();
        state.stopped = true;
        self.unsynced.woken.notify_all();
        let is_there = |state: &mut State| !state.gone;
        let waited = self
            .unsynced
            .gone
            .wait_while_for(&mut state, is_there, PATIENCE);
        drop(state);
        if !waited.timed_out() {
            let _ = thread.join();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Tells, however the thread ends, that it has.
struct Gone(Arc<Unsynced>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.state.lock().gone = true;
        self.0.gone.notify_all();
    }
}

fn commit_in_time(fs: &Fs, unsynced: &Unsynced, how: &Timed) {
    let cred = Cred::root();
    let mut fails = false;
    let mut state = unsynced.state.lock();
    loop {
        let within = match fails {
            true => how.within.max(RETRY),
            false => how.within,
        };
        if !unsynced.wait(&mut state, within) {
            return;
        }
        let synced = MutexGuard::unlocked(&mut state, || {
            fs.sync(&Ctx {
                cred: &cred,
                now: (how.clock)(),
                cancel: &NEVER,
            })
        });
        // Who asks by fsync is told each time; here the first is enough.
        if let Err(e) = &synced
            && !fails
        {
            (how.failed)(&how.name, e);
        }
        fails = synced.is_err();
    }
}

/// Notes what is changed, and what is made durable.
struct Noted {
    below: Fs,
    unsynced: Arc<Unsynced>,
}

impl Layer for Noted {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op.call == Call::Sync {
            let had_changes = self.unsynced.take();
            // A panic is a failure like another: the thread goes on, and it is tried again.
            let synced = catch_unwind(AssertUnwindSafe(call));
            let synced = synced.unwrap_or_else(|_| Err(Error::note(Kind::Io, "a sync panicked")));
            if had_changes && synced.as_ref().is_err_and(may_work_again) {
                self.unsynced.note(0);
            }
            return synced;
        }
        let done = call();
        let may_change = op.call.changes() || op.call == Call::Ioctl;
        if may_change && done.is_ok() {
            let written = if op.call == Call::Write { op.len } else { 0 };
            self.unsynced.note(written);
        }
        done
    }
}

/// Returns whether a commit that failed so is worth another try.
fn may_work_again(error: &Error) -> bool {
    !matches!(
        error.kind(),
        Kind::ReadOnly | Kind::Stale | Kind::Unsupported
    )
}

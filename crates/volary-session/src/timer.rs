//! The commit timer: makes acknowledged changes durable within a bounded time.

use crate::caller::NEVER;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use volary_core::{Call, Cred, Ctx, Error, Fs, Kind, Layer, Op, Result, Time};

/// After this many bytes written, changes are committed before their time.
const UNSYNCED_MAX: u64 = 256 << 20;
/// The least time before a failed commit is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How long `stop` waits for a commit in progress.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread that commits. It ends when this value is stopped or dropped.
pub(crate) struct Timer {
    unsynced: Arc<Unsynced>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread must know of a volume.
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) within: Duration,
    pub(crate) clock: fn() -> Time,
    pub(crate) failed: fn(&str, &Error),
}

/// The changes since the last sync began.
#[derive(Default)]
struct Unsynced {
    changed: AtomicBool,
    bytes: AtomicU64,
    state: Mutex<State>,
    /// Notified at the first change, at too many bytes, and at the end.
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
            // With the lock, the thread is either before its check or already waiting.
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

    /// Waits until changes are due to be committed. Returns false at the end.
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
            // If woken early, check again: somebody else may have synced, and this is the first
            // change after that.
            let waited = self.woken.wait_for(state, within);
            if waited.timed_out() && self.changed.load(Ordering::Acquire) {
                return !state.stopped;
            }
        }
    }
}

impl Timer {
    /// Starts the thread, which commits changes made through the returned file system.
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

    /// Notes a change that is not seen as an operation, such as delayed writes at the close of an
    /// open.
    pub(crate) fn note(&self) {
        self.unsynced.note(0);
    }

    /// Ends the thread. Waits for a commit in progress, for a limited time in case its device is
    /// stuck.
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

/// Signals the end of the thread, even after a panic.
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
        // Callers of fsync are told each time; here the first failure in a row is enough.
        if let Err(e) = &synced
            && !fails
        {
            (how.failed)(&how.name, e);
        }
        fails = synced.is_err();
    }
}

/// A layer that notes changes and syncs.
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
            // A panic counts as a failure: the thread goes on, and the commit is tried again.
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

/// Returns whether a commit that failed with this error is worth another try.
fn may_work_again(error: &Error) -> bool {
    !matches!(
        error.kind(),
        Kind::ReadOnly | Kind::Stale | Kind::Unsupported
    )
}

//! Reports that a volume fails, and that it answers again.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volary_core::{Call, Caps, Cred, Ctx, Error, Finding, Fs, Kind, Layer, Op, Result, Time};

/// A report of an [`Alarm`].
#[derive(Debug)]
pub enum Alert<'a> {
    /// The first call has failed with this error. Later failures are not reported.
    Fails(&'a Error),
    /// The volume answers again, after this many failed calls.
    Answers(u64),
    /// The driver found a fault on the volume that did not make the call fail.
    Found(&'a Finding),
}

/// Receives alerts. Called by the thread whose call failed, before the call returns; must not call
/// the volume.
pub type AlertSink = Box<dyn Fn(Alert<'_>) + Send + Sync>;

/// A layer over a volume that is served. It reports once, not for each call, that the file system
/// below fails (`Io`, or a root that is `Stale`). It also reports what a driver has
/// [found](volary_core::FileSystem::findings) in passing. It changes no answer.
///
/// A volume on a device stays failed: it may still answer from memory, even if the device does not
/// work. A volume that others use too (a directory of the host, an export of another server) may
/// come back. While it fails, each successful call may check the root, at most once a second of the
/// calls' own time. If the root answers, that is reported. A failure of `detach` is not reported,
/// since its caller gets the error.
pub struct Alarm {
    below: Fs,
    tell: AlertSink,
    may_return: bool,
    fails: AtomicBool,
    failed: AtomicU64,
    lost: AtomicU64,
    /// Whether the last sync failed.
    sync_failed: AtomicBool,
    asked: Mutex<Time>,
}

impl Alarm {
    /// Puts the layer over `below`.
    pub fn new(below: Fs, tell: impl Fn(Alert<'_>) + Send + Sync + 'static) -> Self {
        let caps = below.caps();
        Self {
            below,
            tell: Box::new(tell),
            may_return: caps.bits & (Caps::SHARED_LOCKS | Caps::CHECKS_ACCESS | Caps::SHARED) != 0,
            fails: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            sync_failed: AtomicBool::new(false),
            asked: Mutex::new(Time::EPOCH),
        }
    }

    /// Returns how many calls that change data, or make changes durable, have failed. Of failed
    /// syncs in a row, which are repeated again and again, only the first counts.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn is_failure(&self, op: &Op<'_>, e: &Error) -> bool {
        match e.kind() {
            Kind::Io => op.call != Call::Detach,
            Kind::Stale => op.node == Some(self.below.root()),
            _ => false,
        }
    }

    fn note_failure(&self, call: Call, e: &Error) {
        let again = call == Call::Sync && self.sync_failed.swap(true, Ordering::Relaxed);
        let keeps = matches!(call, Call::Sync | Call::FSync | Call::Close);
        if (call.changes() || keeps) && !again {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        if !self.fails.swap(true, Ordering::SeqCst) {
            (self.tell)(Alert::Fails(e));
        }
    }

    /// Checks whether the volume answers again, after a call succeeded while it fails.
    fn ask_again(&self, op: &Op<'_>) {
        let Some(now) = op.cx.map(|cx| cx.now) else {
            return;
        };
        let Some(mut asked) = self.asked.try_lock() else {
            return;
        };
        if !self.may_return || now.secs == asked.secs {
            return;
        }
        *asked = now;
        if self.answers(now) && self.fails.swap(false, Ordering::SeqCst) {
            (self.tell)(Alert::Answers(self.failed.swap(0, Ordering::Relaxed)));
        }
    }

    fn answers(&self, now: Time) -> bool {
        let cred = Cred::root();
        let cancel = volary_core::Cancel::new();
        let cx = Ctx {
            cred: &cred,
            now,
            cancel: &cancel,
        };
        let root = self.below.getattr(&cx, self.below.root());
        root.is_ok() && self.below.statfs(&cx).is_ok()
    }
}

impl Layer for Alarm {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let answer = call();
        match &answer {
            Err(e) if self.is_failure(op, e) => self.note_failure(op.call, e),
            Ok(_) if self.fails.load(Ordering::Relaxed) => {
                if op.call == Call::Sync {
                    self.sync_failed.store(false, Ordering::Relaxed);
                }
                self.ask_again(op);
            }
            _ => {}
        }
        for finding in self.below.findings() {
            (self.tell)(Alert::Found(&finding));
        }
        answer
    }
}

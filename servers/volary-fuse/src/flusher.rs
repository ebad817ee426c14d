//! Makes changes durable now and then: the kernel does not pass `sync` on.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use volary_session::Volume;

/// A thread that syncs a volume; it ends when this is dropped.
pub(crate) struct Flusher {
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Syncs `volume` every so often if `changed` was set meanwhile.
    pub(crate) fn start(volume: Arc<Volume>, changed: Arc<AtomicBool>, every: Duration) -> Self {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let end = Arc::clone(&ended);
        let syncing = move || {
            let mut done = end.0.lock();
            while !*done {
                end.1.wait_for(&mut done, every);
                if !*done && changed.swap(false, Ordering::AcqRel) && volume.sync().is_err() {
                    // Whoever asks for it by fsync is told; here it is tried again.
                    changed.store(true, Ordering::Release);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("volary-sync".into())
            .spawn(syncing);
        Self {
            ended,
            thread: thread.ok(),
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        *self.ended.0.lock() = true;
        self.ended.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

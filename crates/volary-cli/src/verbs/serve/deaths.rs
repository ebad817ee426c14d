//! Servers that end by themselves: the command then ends as well, and says why.

use crate::log::warn;
use signal_hook::iterator::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes whoever waits for signals when a server ends that was not stopped.
#[derive(Clone)]
pub(super) struct Deaths {
    signals: Handle,
    /// The servers are being stopped.
    expected: Arc<AtomicBool>,
}

impl Deaths {
    pub(super) fn new(signals: Handle) -> Self {
        Self {
            signals,
            expected: Arc::default(),
        }
    }

    /// From now on servers end because they were told to.
    pub(super) fn expect(&self) {
        self.expected.store(true, Ordering::SeqCst);
    }

    /// Says that `server` has ended, if nobody told it to, and ends the wait for signals.
    pub(super) fn note(&self, server: &str) {
        if !self.expected.load(Ordering::SeqCst) {
            warn(&format!(
                "the {server} server has ended by itself; all is closed down"
            ));
            self.signals.close();
        }
    }

    /// Notes the end of `server` when dropped: on the thread that it runs on, whatever ends that.
    pub(super) fn watch(&self, server: &'static str) -> Watched {
        Watched(self.clone(), server)
    }
}

/// See [`Deaths::watch`].
pub(super) struct Watched(Deaths, &'static str);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

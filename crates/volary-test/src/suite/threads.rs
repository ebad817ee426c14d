//! The threads of a case. If one panics, the case fails with its message, and nothing is printed.

use super::limit::caught;
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::Scope;

/// Starts threads that end before [`scope`] returns.
pub(crate) struct Threads<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    /// The message of the first panic.
    first: Arc<Mutex<Option<String>>>,
}

impl<'scope> Threads<'scope, '_> {
    /// Runs `work` in a thread of its own.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'scope) {
        let first = Arc::clone(&self.first);
        self.scope.spawn(move || {
            if let Err(what) = caught(work) {
                first.lock().get_or_insert(what);
            }
        });
    }
}

/// Calls `start` with a value that starts threads, and waits for their end.
///
/// # Panics
/// With the message and the location of the first panic in a thread.
pub(crate) fn scope<'env>(start: impl for<'scope> FnOnce(&Threads<'scope, 'env>)) {
    let first = Arc::default();
    std::thread::scope(|scope| {
        start(&Threads {
            scope,
            first: Arc::clone(&first),
        });
    });
    let what = first.lock().take();
    if let Some(what) = what {
        // The hook has already noted it.
        resume_unwind(Box::new(what));
    }
}

//! Runs one case in a thread of its own, and reports its panic or that it exceeds its time limit.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

thread_local! {
    /// The message of this thread's panic, if the thread runs a case.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static RUNS_A_CASE: RefCell<bool> = const { RefCell::new(false) };
}

/// Runs `work` in a new thread with the name of this one. A thread that exceeds the limit is not
/// stopped.
///
/// # Errors
/// The message and the location of its panic, or that it hangs.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (done, end) = channel();
    let name = std::thread::current().name().unwrap_or("case").to_owned();
    let run = move || {
        let _ = done.send(caught(work));
    };
    let thread = std::thread::Builder::new().name(name).spawn(run);
    let thread = thread.map_err(|e| format!("no thread for the case: {e}"))?;
    match end.recv_timeout(limit) {
        Ok(result) => {
            let _ = thread.join();
            result
        }
        Err(RecvTimeoutError::Timeout) => Err(format!("it hangs: not done after {limit:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("its thread ended without a word".to_owned()),
    }
}

/// Runs `work` in this thread, which belongs to a case from then on.
///
/// # Errors
/// The message and the location of its panic, which is not printed.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(note_panics);
    RUNS_A_CASE.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    result.map_err(|panic| PANIC.take().unwrap_or_else(|| words_of(&*panic).to_owned()))
}

/// Installs a panic hook that stores the messages of cases with their location. Panics of other
/// threads go to the previous hook.
fn note_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if RUNS_A_CASE.with_borrow(|runs| *runs) {
            PANIC.set(Some(words(info)));
        } else {
            usual(info);
        }
    }));
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let what = words_of(info.payload());
    match info.location() {
        Some(at) => format!("{what} ({}:{})", at.file(), at.line()),
        None => what.to_owned(),
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}

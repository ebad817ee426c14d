//! Whether a case still runs, after the suite has given up waiting for it.

use std::sync::Arc;
use std::time::Duration;

/// How long a case that was given up may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// The cases that run on a volume: each, and who makes volumes for them, holds a clone.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<()>);

impl Running {
    /// Waits a while for the cases to end; returns whether all have.
    #[expect(clippy::disallowed_methods, reason = "time is what is waited for")]
    pub(super) fn end(&self) -> bool {
        for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
            if self.have_ended() {
                return true;
            }
            std::thread::sleep(STEP);
        }
        self.have_ended()
    }

    fn have_ended(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::Running;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn what_a_case_holds_is_waited_for() {
        let (running, ended) = (Running::default(), Arc::new(AtomicBool::new(false)));
        let (case, end) = (running.clone(), Arc::clone(&ended));
        assert!(!running.have_ended());
        let thread = thread::spawn(move || {
            thread::yield_now();
            end.store(true, Ordering::Release);
            drop(case);
        });
        assert!(running.end());
        assert!(ended.load(Ordering::Acquire));
        thread.join().unwrap();
    }
}

//! Makes changes of names and attributes durable before they are answered; many share one sync.
//! COMMIT does not use this: it syncs one file.

use parking_lot::{Condvar, Mutex};
use volary_core::{Error, Kind, Result};

/// The syncs of one volume. A caller is served by any sync that began after the call.
#[derive(Default)]
pub(crate) struct Stable {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    begun: u64,
    ended: u64,
    running: bool,
    /// The last sync that failed, with its error.
    failed: Option<(u64, Kind)>,
}

impl Stable {
    /// Returns once a sync that began after this call has ended.
    ///
    /// # Errors
    /// Those of `sync`; for callers that waited for another's sync, only its kind.
    pub(crate) fn sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        let mine = state.begun + 1;
        while state.running {
            self.ended.wait(&mut state);
            if state.ended >= mine {
                return match state.failed {
                    Some((number, kind)) if number >= mine => Err(kind.into()),
                    _ => Ok(()),
                };
            }
        }
        state.begun += 1;
        let number = state.begun;
        state.running = true;
        drop(state);
        let mut run = Run {
            stable: self,
            number,
            failed: Some(Kind::Io),
        };
        let done = sync();
        run.failed = done.as_ref().err().map(Error::kind);
        done
    }
}

/// A running sync. Dropping it, even by a panic, marks the sync as ended, so that nobody waits for
/// ever.
struct Run<'a> {
    stable: &'a Stable,
    number: u64,
    failed: Option<Kind>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let mut state = self.stable.state.lock();
        state.running = false;
        state.ended = self.number;
        if let Some(kind) = self.failed {
            state.failed = Some((self.number, kind));
        }
        drop(state);
        self.stable.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn those_who_come_during_a_sync_share_the_next() {
        let stable = Stable::default();
        let (written, synced, syncs) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                    let done = stable.sync(|| {
                        let upto = written.load(Ordering::SeqCst);
                        timer::rest(Duration::from_millis(20));
                        syncs.fetch_add(1, Ordering::SeqCst);
                        synced.fetch_max(upto, Ordering::SeqCst);
                        Ok(())
                    });
                    done.unwrap();
                    assert!(synced.load(Ordering::SeqCst) >= mine);
                });
            }
        });
        assert!(syncs.load(Ordering::SeqCst) < 16);
    }

    #[test]
    fn a_failure_is_told_to_all_whom_it_failed() {
        let stable = Stable::default();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let done = stable.sync(|| {
                        timer::rest(Duration::from_millis(10));
                        Err(Kind::Io.into())
                    });
                    assert_eq!(done.unwrap_err().kind(), Kind::Io);
                });
            }
        });
        stable.sync(|| Ok(())).unwrap();
    }

    #[test]
    fn a_panic_fails_those_who_waited_and_nobody_after() {
        let stable = Stable::default();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                stable.sync(|| {
                    timer::rest(Duration::from_millis(50));
                    panic!("planted")
                })
            });
            while !stable.state.lock().running {
                thread::yield_now();
            }
            // It shares the next sync, which succeeds.
            stable.sync(|| Ok(())).unwrap();
            assert!(first.join().is_err());
        });
        stable.sync(|| Ok(())).unwrap();
    }
}

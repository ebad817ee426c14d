//! Changes made durable before they are answered, many with one sync.

use parking_lot::{Condvar, Mutex};
use volary_core::{Kind, Result};

/// Syncs of one volume. A caller is served by a sync that began after it came,
/// whoever began it.
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
    /// The last sync that failed.
    failed: Option<(u64, Kind)>,
}

impl Stable {
    /// Returns once a sync that began after this call has ended.
    ///
    /// # Errors
    /// Those of `sync`; to those who waited, its kind.
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
        let done = sync();
        let mut state = self.state.lock();
        state.running = false;
        state.ended = number;
        if let Err(e) = &done {
            state.failed = Some((number, e.kind()));
        }
        drop(state);
        self.ended.notify_all();
        done
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
}

//! Brings the entries and attributes of directories that will be read into the host's caches,
//! several directories at a time.
//!
//! The host waits for the disk, or for a server, at each inode that it reads. With several
//! directories at a time, it waits for several inodes at once.

use crate::held::ids::Ids;
use crate::held::listing::each;
use crate::reach::resolve::open_dir;
use crate::reach::tree::Tree;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use volary_core::{Cancel, NodeId};

/// Directories that are read together.
const TOGETHER: usize = 8;

/// The most entries of a directory that are visited, so that one large directory does not delay the
/// others.
const ENTRIES_MAX: usize = 4096;

/// An entry that takes less time than this was already in the host's caches.
const CACHED: Duration = Duration::from_micros(4);

/// Calls that are skipped after one whose entries were all cached.
const SKIPPED: u32 = 8;

/// Decides whether looking ahead pays.
#[derive(Debug, Default)]
struct Pays {
    skips: AtomicU32,
}

impl Pays {
    /// Returns whether to look now.
    fn now(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let skips = &self.skips;
        skips
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_err()
    }

    /// Notes how long it took to look at `entries` entries.
    fn took(&self, time: Duration, entries: usize) {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        if entries > 0 && time < CACHED.saturating_mul(entries) {
            self.skips.store(SKIPPED, Ordering::Relaxed);
        }
    }
}

/// Reads directories ahead.
pub(crate) struct Ahead {
    ids: Arc<Ids>,
    tree: Arc<Tree>,
    pays: Pays,
}

impl Ahead {
    pub(crate) fn new(ids: Arc<Ids>, tree: Arc<Tree>) -> Self {
        Self {
            ids,
            tree,
            pays: Pays::default(),
        }
    }

    /// Looks up all entries of directories, unless those of recent calls were cached. Errors are
    /// left to the operation that reads the entries.
    pub(crate) fn look(&self, cancel: &Cancel, dirs: &[NodeId]) {
        if !self.pays.now() {
            return;
        }
        let begin = monotonic();
        let (next, entries) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            while let Some(dir) = dirs.get(next.fetch_add(1, Ordering::Relaxed)) {
                entries.fetch_add(self.look_at_all(cancel, *dir), Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            for _ in 1..TOGETHER.min(dirs.len()) {
                // If no thread can be started, this one does all the work.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let took = monotonic().saturating_sub(begin);
        self.pays.took(took, entries.into_inner());
    }

    /// Looks up the entries of a directory. Returns how many.
    fn look_at_all(&self, cancel: &Cancel, dir: NodeId) -> usize {
        let mut count = 0;
        let opened = self.tree.dir(dir).and_then(|fd| open_dir(&fd));
        if let Ok(fd) = opened {
            // Errors are left to the listing itself.
            let _ = each(&fd, |_, _, name| {
                let _ = self.ids.at(&fd, name);
                count += 1;
                (count == ENTRIES_MAX || cancel.is_set()).then_some(())
            });
        }
        count
    }
}

/// Returns the time since some fixed moment.
fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_ahead_pauses_while_all_is_cached() {
        let pays = Pays::default();
        assert!(pays.now() && pays.now());
        pays.took(Duration::from_micros(4000), 1000);
        assert!(pays.now(), "that was the disk");
        pays.took(Duration::ZERO, 0);
        assert!(pays.now(), "that was nothing");
        pays.took(Duration::from_micros(3999), 1000);
        assert_eq!(
            (0..20).filter(|_| pays.now()).count(),
            20 - SKIPPED as usize
        );
    }
}

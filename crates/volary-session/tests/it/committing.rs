//! Volumes that make changes durable by themselves.

use crate::{Make, NOW, root};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use volary_core::{Call, Error, Fs, Kind, Layer, Op, Result, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Commit, Volume, VolumeOptions};

const DAY: Duration = Duration::from_secs(86_400);
/// How long what must come is waited for.
const CEILING: Duration = Duration::from_secs(60);

/// Counts syncs, and answers them as it is told.
struct Counted {
    below: Fs,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    seen: Mutex<Seen>,
    more: Condvar,
}

#[derive(Default)]
struct Seen {
    /// That began.
    syncs: u64,
    /// What the next answer.
    fail: Vec<Kind>,
    /// They do not end.
    stuck: bool,
    /// The next one panics.
    panics: bool,
}

impl Told {
    fn syncs(&self) -> u64 {
        self.seen.lock().syncs
    }

    /// Waits until there were so many syncs.
    fn wait_for(&self, syncs: u64) {
        let mut seen = self.seen.lock();
        let few = |seen: &mut Seen| seen.syncs < syncs;
        let waited = self.more.wait_while_for(&mut seen, few, CEILING);
        assert!(!waited.timed_out(), "{} syncs of {syncs}", seen.syncs);
    }
}

impl Layer for Counted {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op.call == Call::Sync {
            let mut seen = self.told.seen.lock();
            seen.syncs += 1;
            self.told.more.notify_all();
            let stuck = |seen: &mut Seen| seen.stuck;
            self.told.more.wait_while_for(&mut seen, stuck, CEILING);
            assert!(!std::mem::take(&mut seen.panics), "planted");
            if !seen.fail.is_empty() {
                return Err(seen.fail.remove(0).into());
            }
        }
        call()
    }
}

fn volume(commit: Commit, failed: fn(&str, &Error)) -> (Arc<Volume>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let fs = Counted {
        below: Mem::attach(MemOptions::default(), Time::EPOCH).unwrap(),
        told: told.clone(),
    };
    let options = VolumeOptions {
        commit,
        commit_failed: failed,
        ..VolumeOptions::new("timed", || NOW)
    };
    (Volume::new(Arc::new(fs), options), told)
}

fn unheard(_: &str, _: &Error) {}

#[test]
fn each_change_is_synced_in_time_and_nothing_else_is() {
    let (quick, told) = volume(Commit::Within(Duration::from_millis(1)), unheard);
    let (slow, slow_told) = volume(Commit::Within(DAY), unheard);
    let (asked, asked_told) = volume(Commit::WhenAsked, unheard);
    for volume in [&slow, &asked] {
        root(volume).file(root(volume).root(), "f", 0o644);
    }
    let s = root(&quick);
    for round in 0..3 {
        let before = told.syncs();
        s.dir(s.root(), &format!("dir {round}"), 0o755);
        told.wait_for(before + 1);
    }
    let settled = told.syncs();
    // What is only looked at needs none.
    for _ in 0..100 {
        s.find(s.root(), "dir 1").unwrap();
    }
    assert_eq!(told.syncs(), settled);
    assert_eq!((slow_told.syncs(), asked_told.syncs()), (0, 0));
}

#[test]
fn a_volume_has_its_own_time_unless_told_otherwise() {
    let fs = Mem::attach(MemOptions::default(), Time::EPOCH).unwrap();
    assert_eq!(fs.commit_time(), Duration::from_secs(5));
    let options = VolumeOptions::new("usual", || NOW);
    assert_eq!(options.commit, Commit::AsVolume);
    let (volume, told) = volume(options.commit, unheard);
    root(&volume).file(root(&volume).root(), "f", 0o644);
    told.wait_for(1);
}

#[test]
fn much_data_is_synced_before_its_time() {
    let (volume, told) = volume(Commit::Within(DAY), unheard);
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    let data = vec![7; 4 << 20];
    for _ in 0..64 {
        s.write(open, Some(0), &data).unwrap();
    }
    told.wait_for(1);
}

#[test]
fn a_commit_that_fails_is_told_once_and_tried_again() {
    static FAILED: AtomicU64 = AtomicU64::new(0);
    let count: fn(&str, &Error) = |name, e| {
        assert_eq!((name, e.kind()), ("timed", Kind::NoSpace));
        FAILED.fetch_add(1, Ordering::SeqCst);
    };
    let (volume, told) = volume(Commit::Within(Duration::from_millis(1)), count);
    told.seen.lock().fail = vec![Kind::NoSpace; 2];
    let s = root(&volume);
    s.dir(s.root(), "d", 0o755);
    told.wait_for(3);
    volume.detach().unwrap();
    assert_eq!(FAILED.load(Ordering::SeqCst), 1);
    assert_eq!(s.find(s.root(), "d").unwrap_err(), Kind::Stale);
}

#[test]
fn a_commit_that_panics_is_tried_again_and_so_are_later_ones() {
    let (volume, told) = volume(Commit::Within(Duration::from_millis(1)), unheard);
    let s = root(&volume);
    for round in 0..2 {
        let before = told.syncs();
        told.seen.lock().panics = true;
        s.dir(s.root(), &format!("dir {round}"), 0o755);
        told.wait_for(before + 2);
    }
}

#[test]
fn a_sync_that_somebody_asks_for_and_that_fails_is_tried_again() {
    let (volume, told) = volume(Commit::Within(Duration::from_millis(1)), unheard);
    told.seen.lock().fail = vec![Kind::NoSpace];
    let s = root(&volume);
    s.dir(s.root(), "d", 0o755);
    // One of the two has the error.
    let _ = volume.sync();
    told.wait_for(2);
}

#[test]
fn a_device_that_is_stuck_does_not_keep_a_volume_from_its_end() {
    let (volume, told) = volume(Commit::Within(Duration::from_millis(1)), unheard);
    told.seen.lock().stuck = true;
    let s = root(&volume);
    s.dir(s.root(), "d", 0o755);
    told.wait_for(1);
    // Others go on: nothing of the session's is locked meanwhile.
    s.find(s.root(), "d").unwrap();
    volume.detach().unwrap();
    drop((s, volume));
    told.seen.lock().stuck = false;
    told.more.notify_all();
}

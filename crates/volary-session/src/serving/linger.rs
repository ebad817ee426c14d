//! [`Linger`]: a thread that has just answered polls for the next request a little longer before it
//! sleeps.
//!
//! A client that makes one request after another loses most of its time to two processors that wake
//! each other, and little to the work. While its requests follow each other closely, the thread
//! that answers them stays awake for the next one. It uses only processor time that nobody else
//! wants: the thread yields at each look, and only one thread of the process polls at a time. After
//! vain polls it polls more rarely.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A request within this time after an answer, in nanoseconds, follows it closely. That is enough
/// for two processors to wake, and for a slow client to do a little work. No thread stays awake
/// longer.
const SOON: u64 = 200_000;
/// The least time that a thread stays awake, in nanoseconds.
const LEAST: u64 = 30_000;
/// How many requests must follow closely before a thread stays awake. Each vain poll doubles the
/// number, up to the maximum.
const NEEDED: u32 = 4;
const NEEDED_MAX: u32 = 1024;

/// Whether a thread of this process is polling now.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// Whether this process has more than one processor. Cached, since finding out reads files of
/// control groups and takes 100 µs.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// Decides when the threads that serve one client, or one mount, stay awake.
#[derive(Debug)]
pub struct Linger {
    clock: fn() -> Instant,
    made: Instant,
    /// When the last answer was given, in nanoseconds after `made`.
    answered: AtomicU64,
    /// How many requests in a row have followed closely.
    soon: AtomicU32,
    /// Moving average, over about eight requests, of the nanoseconds until the next one comes.
    usual: AtomicU64,
    needed: AtomicU32,
    is_able: bool,
}

impl Linger {
    /// Starts with nothing known of the client. With one processor, no thread ever lingers.
    pub fn new(clock: fn() -> Instant) -> Self {
        Self {
            clock,
            made: clock(),
            answered: AtomicU64::new(0),
            soon: AtomicU32::new(0),
            usual: AtomicU64::new(LEAST),
            needed: AtomicU32::new(NEEDED),
            is_able: *HAS_PROCESSORS,
        }
    }

    /// Notes that a request has come.
    pub fn begin(&self) {
        let answered = self.answered.load(Ordering::Relaxed);
        let after = self.nanos().saturating_sub(answered);
        if after > SOON {
            self.soon.store(0, Ordering::Relaxed);
            return;
        }
        self.soon.fetch_add(1, Ordering::Relaxed);
        let usual = self.usual.load(Ordering::Relaxed);
        let usual = usual - usual / 8 + after / 8;
        self.usual.store(usual, Ordering::Relaxed);
    }

    /// Notes that the last request has been answered. If it is worth it, polls `from` until it can
    /// be read or has reached its end. Polls at most twice as long as is usual for this client, and
    /// never longer than 200 µs.
    pub fn end_on(&self, from: impl AsFd) {
        self.end(|| {
            let mut fds = [PollFd::new(&from, PollFlags::IN)];
            !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
        });
    }

    /// Polls likewise, until `has_come` says that the next request has arrived.
    fn end(&self, mut has_come: impl FnMut() -> bool) {
        let now = self.nanos();
        self.answered.store(now, Ordering::Relaxed);
        let needed = self.needed.load(Ordering::Relaxed);
        if !self.is_able || self.soon.load(Ordering::Relaxed) < needed {
            return;
        }
        if AWAKE.swap(true, Ordering::Acquire) {
            return;
        }
        let came = self.look(now, &mut has_come);
        AWAKE.store(false, Ordering::Release);
        if came {
            self.needed.store(NEEDED, Ordering::Relaxed);
        } else {
            self.soon.store(0, Ordering::Relaxed);
            let more = needed.saturating_mul(2).min(NEEDED_MAX);
            self.needed.store(more, Ordering::Relaxed);
        }
    }

    fn look(&self, since: u64, has_come: &mut impl FnMut() -> bool) -> bool {
        let longest = (2 * self.usual.load(Ordering::Relaxed)).clamp(LEAST, SOON);
        loop {
            if has_come() {
                return true;
            }
            if self.nanos().saturating_sub(since) > longest {
                return false;
            }
            thread::yield_now();
        }
    }

    fn nanos(&self) -> u64 {
        nanos((self.clock)().saturating_duration_since(self.made))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<(Option<Instant>, u64)> = const { Cell::new((None, 0)) };
    }

    #[expect(clippy::disallowed_methods, reason = "a time to count from")]
    fn start() -> Instant {
        Instant::now()
    }

    /// Returns a time that advances by a microsecond at each call.
    fn clock() -> Instant {
        let (base, micros) = NOW.get();
        let base = base.unwrap_or_else(start);
        NOW.set((Some(base), micros + 1));
        base + Duration::from_micros(micros)
    }

    fn pass(micros: u64) {
        let (base, now) = NOW.get();
        NOW.set((base, now + micros));
    }

    /// Returns how often a thread polls for the next request, after one that came `gap`
    /// microseconds after the last answer. The `found`-th look finds the next one.
    fn looks(linger: &Linger, gap: u64, found: u32) -> u32 {
        pass(gap);
        linger.begin();
        let mut looks = 0;
        linger.end(|| {
            looks += 1;
            looks == found
        });
        looks
    }

    // One test: only one thread of a process stays awake.
    #[test]
    fn it_stays_awake_for_who_asks_again_soon_and_little_in_vain() {
        let mut linger = Linger::new(clock);
        linger.is_able = true;
        for _ in 0..100 {
            assert_eq!(looks(&linger, 1000, 1), 0, "a slow client");
        }
        for _ in 1..NEEDED {
            assert_eq!(looks(&linger, 20, 3), 0, "not yet");
        }
        for _ in 0..100 {
            assert_eq!(looks(&linger, 20, 3), 3);
        }
        assert_eq!(looks(&linger, 1000, 3), 0, "slow again");

        let mut linger = Linger::new(clock);
        linger.is_able = true;
        let all: u32 = (0..10_000).map(|_| looks(&linger, 80, u32::MAX)).sum();
        // The first vain polls are 4, 8, 16 … 1024 requests apart, the later ones always 1024.
        assert!((10 * 145..20 * 165).contains(&all), "{all} looks");
        linger.is_able = false;
        let none: u32 = (0..10_000).map(|_| looks(&linger, 1, 2)).sum();
        assert_eq!(none, 0);
    }
}

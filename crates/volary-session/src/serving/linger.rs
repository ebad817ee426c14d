//! [`Linger`]: who has just answered looks for the next request a little longer
//! before it sleeps.
//!
//! A client that makes one request after another loses most of its time to the two
//! processors that wake each other, and little to the work. While its requests come
//! one close upon the other, the thread that answers them stays awake for the next
//! one. It costs processor time that nobody else wants: the thread offers its
//! processor at each look, one thread of the process does so at a time, and after
//! looks in vain it does so more rarely.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What comes so soon after an answer comes close upon it: time enough for two
/// processors to wake, and for a client that has a little to do on a slow one. Nobody
/// stays awake longer.
const SOON: u64 = 200_000;
/// The least that a thread stays awake.
const LEAST: u64 = 30_000;
/// How many requests must have come so, before it is worth to stay awake; after
/// looks in vain twice as many each time, up to the most.
const NEEDED: u32 = 4;
const NEEDED_MAX: u32 = 1024;

/// Whether a thread of this process stays awake now.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// Whether this process has more than one processor. Asked once: the answer takes files of control groups, 100 us.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// For the threads that answer one client, or one mount.
#[derive(Debug)]
pub struct Linger {
    clock: fn() -> Instant,
    made: Instant,
    /// When the last answer was given, in nanoseconds after `made`.
    answered: AtomicU64,
    /// How many requests have come soon, one after the other.
    soon: AtomicU32,
    /// After how many nanoseconds such requests come, on an average of the last eight or so.
    usual: AtomicU64,
    needed: AtomicU32,
    is_able: bool,
}

impl Linger {
    /// Nothing is known of the client yet. With one processor, nobody ever lingers.
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

    /// Notes that the last request has been answered; then, if that is worth it, waits
    /// without sleep until there is something to be read from where requests come, or
    /// there will be nothing any more: twice as long as is usual for this client, and
    /// 200 us at most.
    pub fn end_on(&self, from: impl AsFd) {
        self.end(|| {
            let mut fds = [PollFd::new(&from, PollFlags::IN)];
            !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
        });
    }

    /// The same, until `has_come` says that the next one is there.
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

    /// Returns a clock that goes on by a microsecond at each look.
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

    /// Returns how often it is looked for the next request, after one that came `gap`
    /// microseconds after the answer before; the next is found at the `found`-th look.
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
        // Looks in vain are 4, 8, 16 … 1024 requests apart, and then always 1024.
        assert!((10 * 145..20 * 165).contains(&all), "{all} looks");
        linger.is_able = false;
        let none: u32 = (0..10_000).map(|_| looks(&linger, 1, 2)).sum();
        assert_eq!(none, 0);
    }
}

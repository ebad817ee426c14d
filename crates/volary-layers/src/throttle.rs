//! Limits the operations and bytes per second.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Call, Cancel, Error, Fs, Kind, Layer, Op, Options, Result};

/// A monotonic clock, and a way to wait on it.
pub trait Pace: Send + Sync {
    /// Returns the time since some fixed moment.
    fn now(&self) -> Duration;
    /// Waits for about this time.
    fn wait(&self, time: Duration);
}

/// Limits the operations per second, and the bytes per second of reads and writes. Up to one
/// second's worth of unused rate is kept, so that a burst of this size passes at once. A call is
/// never split, but later ones wait for what it took too much.
///
/// A call that waits ends with `Interrupted` within 50 ms after it was cancelled. `close` and
/// `detach` are not delayed. Changes no caps. Above a cache the layer delays every call, below it
/// only those that miss the cache.
pub struct Throttle {
    below: Fs,
    pace: Arc<dyn Pace>,
    ops: Option<Bucket>,
    bytes: Option<Bucket>,
}

/// Lets `rate` units pass per second (the generic cell rate algorithm, ITU-T I.371). `free_at` is
/// the time by which all passed units have been paid for.
struct Bucket {
    rate: u64,
    free_at: Mutex<Duration>,
}

const BURST: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);

impl Throttle {
    /// Puts the layer over `below`, with at most `ops` and `bytes` per second, if they are given.
    pub fn new(below: Fs, pace: Arc<dyn Pace>, ops: Option<u64>, bytes: Option<u64>) -> Self {
        Self {
            below,
            pace,
            ops: ops.map(Bucket::new),
            bytes: bytes.map(Bucket::new),
        }
    }

    /// Parses `ops=N`, `bytes=SIZE`, or both with a comma between: the limits per second.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected.
    pub fn parse(below: Fs, pace: Arc<dyn Pace>, text: &str) -> Result<Self> {
        let bad = || {
            let words = format!(
                "layer throttle does not know '{text}'; expected ops=N, bytes=SIZE (a second) \
                 or both"
            );
            Error::note(Kind::Invalid, words)
        };
        let mut options = Options::parse(text);
        let ops = options.number("ops").map_err(|_| bad())?;
        let bytes = options.number("bytes").map_err(|_| bad())?;
        options.take("ops");
        options.take("bytes");
        let given = ops.is_some() || bytes.is_some();
        if !given || !options.is_empty() || ops == Some(0) || bytes == Some(0) {
            return Err(bad());
        }
        Ok(Self::new(below, pace, ops, bytes))
    }

    fn pass(&self, bucket: Option<&Bucket>, cost: u64, cancel: Option<&Cancel>) -> Result<()> {
        let Some(bucket) = bucket.filter(|_| cost > 0) else {
            return Ok(());
        };
        let until = self.pace.now() + bucket.take(cost, self.pace.now());
        loop {
            let now = self.pace.now();
            if now >= until {
                return Ok(());
            }
            if cancel.is_some_and(Cancel::is_set) {
                bucket.give_back(cost);
                return Err(Kind::Interrupted.into());
            }
            self.pace.wait(STEP.min(until - now));
        }
    }
}

impl Bucket {
    fn new(rate: u64) -> Self {
        let free_at = Mutex::default();
        Self { rate, free_at }
    }

    fn time_for(&self, cost: u64) -> Duration {
        let nanos = u128::from(cost) * 1_000_000_000 / u128::from(self.rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Takes `cost` units, and returns how long to wait before using them.
    fn take(&self, cost: u64, now: Duration) -> Duration {
        let mut free_at = self.free_at.lock();
        let start = (*free_at).max(now);
        *free_at = start.saturating_add(self.time_for(cost));
        (start - now).saturating_sub(BURST)
    }

    fn give_back(&self, cost: u64) {
        let mut free_at = self.free_at.lock();
        *free_at = free_at.saturating_sub(self.time_for(cost));
    }
}

impl Layer for Throttle {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        // These must not be cancelled, so that the open or the attachment ends.
        if !matches!(op.call, Call::Close | Call::Detach) {
            let cancel = op.cx.map(|cx| cx.cancel);
            self.pass(self.ops.as_ref(), 1, cancel)?;
            self.pass(self.bytes.as_ref(), op.len, cancel)?;
        }
        call()
    }
}

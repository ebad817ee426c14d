//! Options of bulk reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// One by one in the order of the listing, each opened and read through the session.
    Vanilla,
    /// Fragments in the order of their places, each with its own request.
    DaftNm,
    /// As [`DaftNm`](Self::DaftNm), but fragments that are close to each other share a request.
    #[default]
    DaftM,
}

/// What happens if files being assembled need more memory than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleaning {
    /// Completes the begun files that would hold most memory for longest, and then continues the
    /// sweep.
    #[default]
    OnDemand,
    /// Spreads files over several sweeps beforehand, so that each sweep fits.
    FirstFit,
}

/// A loader's order: random within a window that moves over the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// The same seed gives the same order.
    pub seed: u64,
    /// Bytes of files among which the order is random. No more than half of the memory is used.
    pub window: u64,
}

/// A clock: the time since some moment.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Options of a bulk read.
#[derive(Clone)]
pub struct Options {
    /// Bound on the memory for the list of fragments and for read data, in bytes: at least
    /// [`MEMORY_MIN`](Self::MEMORY_MIN).
    pub memory: u64,
    /// How files are read.
    pub method: Method,
    /// What happens if memory runs short.
    pub cleaning: Cleaning,
    /// Files of at most this size, in bytes, are delivered in one piece, larger ones in chunks.
    /// Capped at an eighth of [`memory`](Self::memory).
    pub whole_max: u64,
    /// Fragments at most this far apart, in bytes, share a request. `None`: the device is probed.
    pub gap: Option<u64>,
    /// Largest request in bytes, unless one fragment is larger. `None`: the device is probed.
    pub request: Option<u64>,
    /// Requests in flight. `None`: the device is probed.
    pub depth: Option<usize>,
    /// Threads of the consumer. With one, the engine's thread calls the consumer, and in the same
    /// order each time.
    pub workers: usize,
    /// A loader's order.
    pub shuffle: Option<Shuffle>,
    /// The clock by which devices are probed and runs are timed. `None`: neither.
    pub clock: Option<Clock>,
}

impl Options {
    /// The default memory bound: 256 MiB.
    pub const MEMORY: u64 = 256 << 20;
    /// The least memory: 1 MiB.
    pub const MEMORY_MIN: u64 = 1 << 20;
    /// The default of [`whole_max`](Self::whole_max): 4 MiB.
    pub const WHOLE_MAX: u64 = 4 << 20;
    /// The most threads of the consumer, and the most requests at a time.
    pub const THREADS_MAX: usize = 64;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: Self::MEMORY,
            method: Method::default(),
            cleaning: Cleaning::default(),
            whole_max: Self::WHOLE_MAX,
            gap: None,
            request: None,
            depth: None,
            workers: 1,
            shuffle: None,
            clock: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("memory", &self.memory)
            .field("method", &self.method)
            .field("cleaning", &self.cleaning)
            .field("whole_max", &self.whole_max)
            .field("gap", &self.gap)
            .field("request", &self.request)
            .field("depth", &self.depth)
            .field("workers", &self.workers)
            .field("shuffle", &self.shuffle)
            .field("clock", &self.clock.is_some())
            .finish()
    }
}

/// Shares of the memory: the most that each part of the engine may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The list of files and fragments.
    pub(crate) list: u64,
    /// Data read ahead, and files read through the session.
    pub(crate) reads: u64,
    /// Files being assembled. They also get what a list does not use.
    pub(crate) assembly: u64,
    /// Buffers of cleaning.
    pub(crate) scratch: u64,
    /// The largest file that is delivered in one piece.
    pub(crate) whole_max: u64,
}

impl Shares {
    pub(crate) fn of(options: &Options) -> Self {
        let memory = options.memory.max(Options::MEMORY_MIN);
        let eighth = memory / 8;
        Self {
            list: eighth * 2,
            reads: eighth * 2,
            assembly: eighth * 3 + eighth / 2,
            scratch: (eighth / 2).min(1 << 20),
            // Offsets within such a file have 32 bits.
            whole_max: options.whole_max.min(eighth).min(1 << 30),
        }
    }
}

//! The block cache: a bounded number of pages over a device, with delayed,
//! ordered writes.
//!
//! # Order
//!
//! A write has a [`Stage`]. [`Cache::commit`] writes the dirty sectors of stage 0, flushes, writes
//! those of stage 1, flushes, and so on. Thus a later stage is on the disk only when all earlier
//! stages are. Within a stage there is no order. Between commits, only sectors of stage 0 leave the
//! cache on their own, when memory is short. A driver that keeps many dirty sectors of later stages
//! watches [`Cache::held`] and commits.
//!
//! A commit takes what is dirty at one moment. Writes during a commit go with the next one, in
//! their own stage. A sector that is written in two stages before one commit goes with the later
//! stage. If something in between must follow the first write, the driver commits first.
//!
//! # When the device fails
//!
//! - **A read** that fails is retried sector by sector. The call fails only if a sector that it
//!   needs cannot be read.
//! - **A write** that fails leaves its sectors, and those not yet written, as dirty as before. The
//!   commit returns the error, and so does every later one until the device accepts the sectors. If
//!   a write-back to free memory fails, the write that needed the memory fails too, and its data is
//!   not taken.
//! - **A flush** that fails ends all writing: what the device had taken may be lost, and no later
//!   flush can tell ([`BlockDevice::flush`]). From then on, all writes and commits return `Io`, but
//!   reads go on.
//!
//! # Requests
//!
//! Adjacent pages are read and written in one request of up to [`CacheOptions::io_size`]. A read of
//! at least that length that finds nothing in the cache goes straight to the caller's buffer, in
//! requests of that length. Consecutive misses read ahead: one page, two, four, and up to
//! `io_size`. Over a device with its own cache ([`BlockDevice::is_cached`]), content takes no pages
//! ([`Cache::direct_from`]), because a second copy would cost more than it saves.
//! # Locks
//!
//! All operations may run at the same time. One write-back runs at a time (`writing`). During it,
//! for moments only, `gate` excludes direct writes, and all shards are locked to take a snapshot of
//! what is dirty. While the device works, no lock but `writing` is held, except that a direct write
//! holds `gate`, shared.
//!
//! The order is `writing`, `gate`, shards in order. A thread that needs a page which is being
//! loaded waits on its shard's `moved`.
#![allow(
    clippy::indexing_slicing,
    reason = "ranges are checked on entry, against the size of the device; no index comes from its content"
)]

mod ahead;
mod commit;
mod direct;
mod page;
mod read;
mod room;
mod shard;
mod stage;
mod streams;
mod write;

pub use stage::{PAGE, SECTOR, Stage};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use shard::{GROUP, Shard, Totals};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use streams::Streams;
use volary_core::BlockDevice;

/// Bounds and sizes of a [`Cache`].
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// The most bytes of pages in the cache, not counting those with dirty sectors in stages after
    /// 0. At least four times `io_size` is used.
    pub memory: u64,
    /// The longest request to the device, in bytes. Adjacent pages are read and written together up
    /// to this length. It is a power of two and at least [`PAGE`]. Other values are rounded up.
    pub io_size: u32,
}

impl Default for CacheOptions {
    /// 64 MiB, in requests of 256 KiB.
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            io_size: 256 << 10,
        }
    }
}

/// The number of shards of the page table.
const SHARDS: u64 = 32;

/// Buffers that are kept for the next loads.
const BUFFERS: usize = 4;

/// A cache over a device. See the [module](self) for its guarantees.
pub struct Cache {
    dev: Arc<dyn BlockDevice>,
    /// Size of the device, in bytes.
    size: u64,
    read_only: bool,
    /// Whether the device has its own cache.
    below_is_cached: bool,
    /// The most pages.
    capacity: usize,
    /// The longest request, in pages.
    io_pages: u64,
    shards: Vec<Part>,
    totals: Totals,
    streams: Mutex<Streams>,
    buffers: Mutex<Vec<Vec<u8>>>,
    /// The shared bytes of pages without content.
    blank: Arc<[u8]>,
    /// The shard at which the clock's hand is.
    clock: AtomicUsize,
    /// The group at which the next write-back of stage 0 begins.
    sweep: AtomicU64,
    writing: Mutex<()>,
    gate: RwLock<()>,
    /// Whether the device has taken writes since its last flush.
    unflushed: AtomicBool,
    /// Why a flush failed, if one has.
    failed: OnceLock<String>,
}

/// A shard, and the signal that a page in it was loaded or written.
#[derive(Default)]
struct Part {
    shard: Mutex<Shard>,
    moved: Condvar,
}

impl Cache {
    /// Returns an empty cache over `dev`. Dirty sectors are lost when the cache is dropped, as in a
    /// power cut.
    pub fn new(dev: Arc<dyn BlockDevice>, options: CacheOptions) -> Self {
        let geometry = dev.geometry();
        let io_size = u64::from(options.io_size.next_power_of_two()).max(PAGE as u64);
        let memory = options.memory.max(4 * io_size);
        Self {
            below_is_cached: dev.is_cached(),
            dev,
            size: geometry.size,
            read_only: geometry.read_only,
            capacity: usize::try_from(memory / PAGE as u64).unwrap_or(usize::MAX / 2),
            io_pages: io_size / PAGE as u64,
            shards: (0..SHARDS).map(|_| Part::default()).collect(),
            totals: Totals::default(),
            streams: Mutex::default(),
            buffers: Mutex::default(),
            blank: Arc::from([0; PAGE]),
            clock: AtomicUsize::new(0),
            sweep: AtomicU64::new(0),
            writing: Mutex::default(),
            gate: RwLock::default(),
            unflushed: AtomicBool::new(false),
            failed: OnceLock::new(),
        }
    }

    /// Returns the device below.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.dev
    }

    /// Returns the size of the device, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the smallest length at which reads and writes had better bypass this cache: a page over
    /// a device that has its own cache, the longest request over others.
    pub fn direct_from(&self) -> usize {
        if self.below_is_cached {
            PAGE
        } else {
            self.io_size()
        }
    }

    /// Returns the most bytes of pages in the cache, not counting those with dirty sectors in
    /// stages after 0.
    pub fn memory(&self) -> u64 {
        (self.capacity * PAGE) as u64
    }

    /// Returns the longest request to the device, in bytes.
    pub fn io_size(&self) -> usize {
        self.io_pages as usize * PAGE
    }

    /// Returns the dirty bytes in stages after 0.
    pub fn held(&self) -> u64 {
        (self.totals.held.load(Ordering::Relaxed) * SECTOR) as u64
    }

    /// Returns the dirty bytes in all stages.
    pub fn dirty(&self) -> u64 {
        self.held() + (self.totals.data.load(Ordering::Relaxed) * SECTOR) as u64
    }

    /// Returns the bytes of all pages in the cache.
    pub fn used(&self) -> u64 {
        (self.totals.pages.load(Ordering::Relaxed) * PAGE) as u64
    }

    fn part(&self, page: u64) -> &Part {
        &self.shards[(page / GROUP % SHARDS) as usize]
    }

    fn shard(&self, page: u64) -> MutexGuard<'_, Shard> {
        self.part(page).shard.lock()
    }
}

/// Splits a range of bytes at the borders of pages: page, offset in it, length.
fn pages_of(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        let within = at % PAGE as u64;
        let n = (end - at).min(PAGE as u64 - within);
        let found = (at / PAGE as u64, within as usize, n as usize);
        at += n;
        (n > 0).then_some(found)
    })
}

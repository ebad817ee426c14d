//! The cache through which a volume is read and written.

use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::BlockDevice;

/// Cache memory for inspecting a volume that is not attached, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 16 << 20;

/// Returns a cache for reading: requests of up to 1 MiB where memory allows.
pub(crate) fn cache(dev: Arc<dyn BlockDevice>, memory: u64) -> Cache {
    let io_size = (memory / 16).clamp(64 << 10, 1 << 20);
    let io_size = u32::try_from(io_size).map_or(64 << 10, u32::next_power_of_two);
    Cache::new(dev, CacheOptions { memory, io_size })
}

//! The cache for reading.

use std::sync::Arc;
use volary_block::{Cache, CacheOptions};
use volary_core::BlockDevice;

/// Cache memory for inspecting a volume that is not attached, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 4 << 20;

/// Returns a cache for reading.
pub(crate) fn cache(dev: Arc<dyn BlockDevice>, memory: u64) -> Cache {
    let io_size = 64 << 10;
    Cache::new(dev, CacheOptions { memory, io_size })
}

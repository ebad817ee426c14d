//! What drivers read before it is asked for (`FileSystem::prefetch`, `Cache::prefetch_all`).

/// Bytes of one directory that are read ahead, at most.
pub const AHEAD_MAX: u64 = 8 << 20;

/// A stretch of the device: where it begins, and its length, in bytes.
pub type Stretch = (u64, u64);

//! Bounds of what drivers read ahead (`FileSystem::prefetch`, `Cache::prefetch_all`).

/// The most bytes of one directory that are read ahead.
pub const AHEAD_MAX: u64 = 8 << 20;

/// A stretch of the device: its offset and its length, in bytes.
pub type Stretch = (u64, u64);

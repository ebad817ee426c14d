//! The block cache: a bounded number of pages over a device, with delayed,
//! ordered writes.
//!
//! # Order
//!
//! A write goes in with a [`Stage`]. [`Cache::commit`] writes the dirty sectors
//! of stage 0, flushes, those of stage 1, flushes, and so on: what is in a
//! later stage is on the disk only when all earlier stages are. Within a
//! stage there is no order. Between commits, only sectors of stage 0 leave
//! the cache on their own, when memory is short; a driver that keeps many
//! dirty sectors of later stages watches [`Cache::held`] and commits.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{BlockDevice, Result};

/// When a write may reach the device, relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// Any time: data that nothing on the disk points to as yet, or that may
    /// be old or new after a crash.
    pub const DATA: Self = Self(0);
    /// The last stage.
    pub const LAST: Self = Self(3);
}

/// Bounds and sizes of a [`Cache`].
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Most bytes of pages that it holds, dirty ones of stages after 0 apart.
    pub memory: u64,
    /// Longest request to the device, in bytes: adjacent pages are read and
    /// written together up to this. A power of two, at least [`PAGE`].
    pub io_size: u32,
}

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Bytes in the unit of which dirtiness and stage are kept.
pub const SECTOR: usize = 512;

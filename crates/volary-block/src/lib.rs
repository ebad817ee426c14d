//! Block devices, partitions, images and the block cache.
//!
//! | module | what |
//! |---|---|
//! | [`cache`] | bounded pages over a device, with delayed, ordered writes |
//! | [`FileDevice`] | a regular file or a raw block device |
//! | [`MemDevice`] | memory; parts that were never written take none |
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub mod cache;
mod file;
mod mem;
mod range;

pub use cache::{Cache, CacheOptions, PAGE, SECTOR, Stage};
pub use file::{FileDevice, OpenOptions};
pub use mem::MemDevice;

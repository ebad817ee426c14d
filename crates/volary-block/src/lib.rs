//! Block devices, partitions, images and the block cache.
//!
//! | module | what |
//! |---|---|
//! | [`cache`] | bounded pages over a device, with delayed, ordered writes |
//! | [`FileDevice`] | a regular file or a raw block device |
//! | [`MemDevice`] | memory; parts that were never written take none |
//! | [`Slice`], [`partitions`] | a range of a device; where MBR, GPT and disklabels put them |
//! | [`open_image`] | an image of any kind |
//! | `Qcow2` | a qcow2 image; with the feature `qcow2` |
//! | [`Recorder`] | records or counts requests |
//! | [`Faulty`] | fails on demand |
//! | [`Overlay`] | keeps changes on another device |
//! | [`ByReplica`] | reads a replica in the place of a superblock or boot sector |
//! | [`Skipping`] | reads zeros for unreadable sectors |
//! | [`Reservations`] | the free space that an allocator reserves for files that grow |
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

mod by_replica;
pub mod cache;
mod faulty;
mod file;
mod image;
mod magic;
mod mem;
mod overlay;
mod part;
#[cfg(feature = "qcow2")]
mod qcow2;
mod range;
mod record;
mod reserve;
#[cfg(test)]
mod seeded;
mod skipping;
mod slice;
mod zeros;

pub use by_replica::ByReplica;
pub use cache::{Cache, CacheOptions, PAGE, SECTOR, Stage};
pub use faulty::{Faulty, How, On, When};
pub use file::{FileDevice, OpenOptions, cached_pages};
pub use image::open_image;
pub use mem::MemDevice;
pub use overlay::Overlay;
pub use part::{Partition, Scheme, partition, partitions};
#[cfg(feature = "qcow2")]
pub use qcow2::{Qcow2, catches_panic};
pub use record::{Counts, Recorder, Request};
pub use reserve::{Reservation, Reservations};
pub use skipping::Skipping;
pub use slice::Slice;
pub use zeros::Zeros;

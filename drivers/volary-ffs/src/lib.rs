//! The Fast File System (McKusick, Joy, Leffler and Fabry, 1984): 4.3BSD's format, UFS1 and
//! UFS2, in both byte orders. This driver makes empty volumes, and reads.
//!
//! `volume` checks the superblock once; `inode` makes inodes of what is stored, `blocks`
//! finds their blocks, `dir` goes through directories, `xattr` through extended attributes,
//! `cg` through cylinder groups; `fs` is the [`FileSystem`](volary_core::FileSystem).
//!
//! # Node ids
//!
//! Inode number and generation, as the format keeps them: they mean the same for ever.
//!
//! # Limits
//!
//! Snapshots (FreeBSD) answer `Unsupported` when they are opened. Apple's variant with
//! directories in chunks of 1024 bytes is not read. Nothing grows with the image but what
//! `check` keeps: a bit for each fragment and a few bytes for each inode in use.
//!
//! # Locks
//!
//! The table of opens, the hints for look-ups and the cache have their own; none is held
//! while another is taken.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod attached;
mod blocks;
mod cg;
mod check;
mod dir;
mod dump;
mod ffs;
mod fs;
mod info;
mod inode;
mod make;
mod map;
mod ondisk;
mod scan;
mod superblock;
mod volume;
mod xattr;

pub use ffs::{FFS, Ffs};

//! ext2, ext3 and ext4, for reading.
//!
//! `ondisk` has the structures as they are stored; `volume` is the superblock, checked, and `replica` finds
//! another one where that makes no sense; `store` reads blocks, groups and inodes; `runs` says where a file's blocks lie (`run`), by `extents` or
//! `indirect`; `dir`, `xattr` and `file` are what inodes hold; `ahead` reads both before they are asked
//! for; `fs` is the
//! [`FileSystem`](volary_core::FileSystem).
//!
//! # The journal
//!
//! A volume that was not left cleanly is read as it will be once its journal is replayed, and nothing
//! is written: `journal` finds the newest copy of each block, and a device with these in their
//! places (`journal::replayed`) lies under everything else. Fast commits say what was done, not
//! what blocks became; `fast` keeps it by inode and directory, and `store`, `runs` and `listing` ask there first.
//!
//! # Node ids
//!
//! An inode's number and its generation, as on the volume.
//!
//! # Limits
//!
//! Encrypted files, directories and symlinks are listed with their attributes, and answer
//! `Unsupported` to all that needs their key. Names in directories that Linux folds (`casefold`) are told apart by
//! case. Journals on other devices are not replayed. Memory grows with the journal (some tens of
//! bytes for each block that it holds); `check` and `map` keep a bit for each block in use and some
//! bytes for each inode.
//!
//! # Locks
//!
//! The table of opens, the last run of each open, and the cache have their own; none is held while
//! another is taken.
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

mod ahead;
mod attached;
mod check;
mod csum;
mod dir;
mod dump;
mod ext4;
mod extents;
mod fast;
mod features;
mod file;
mod fs;
mod htree;
mod indirect;
mod info;
mod inode;
mod journal;
mod listing;
mod map;
mod ondisk;
mod replica;
mod run;
mod runs;
mod scan;
mod store;
mod volume;
mod xattr;

pub use ext4::{EXT4, Ext4};

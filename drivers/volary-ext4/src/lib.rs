//! ext2, ext3 and ext4, for reading.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | structures as stored, the checked superblock, checksums, the blocks of the device |
//! | `fast` | what fast commits changed |
//! | `inodes` | group descriptors and the inode tables |
//! | `content` | where blocks lie, by extents or indirect blocks; files, symlinks, extended attributes |
//! | `directory` | entries, hash trees, looking up and listing |
//! | `store` | an opened volume, which hands out its parts |
//! | `journal` | the journal and the fast commits after it, replayed in memory |
//! | `scan` | goes through all groups and inodes |
//! | `attached` | an attached volume: the options, the opens and the operations |
//! | `look`, `check` | `info`, `dump` and `map`; `fsck -n` |
//!
//! `ext4` is what there is to do with a volume.
//!
//! # Parts
//!
//! What is in memory of a volume is in three of them: `Blocks` has the superblock, the cache and the
//! journal's blocks, `Groups` the group that was checked last, `Fast` what fast commits changed. The others
//! are of these, and most of one inode:
//!
//! ```text
//! Attached               the opens and the operations; has a Store
//! Store                  an opened volume
//! ├─ Groups              descriptors, and where inodes stand
//! │  └─ Blocks           blocks, bytes and checksums, with the journal's blocks in their places
//! ├─ Fast                what fast commits changed
//! ├─ InodeTables         inodes; has Groups and Fast
//! ├─ Xattrs              an inode's extended attributes; has InodeTables
//! └─ Listing             a directory as it is now: finds and lists; has Fast
//!    └─ Directory        a directory as it is stored: its chunks and their entries
//!       └─ Content       what an inode holds, in its blocks or in itself
//!          └─ BlockMap   where an inode's blocks lie; has Blocks and Fast
//!             ├─ ExtentTree
//!             └─ Indirect
//! ```
//!
//! # The journal
//!
//! A volume that was not left cleanly is read as it will be once its journal is replayed, and nothing
//! is written: `journal` finds the newest copy of each block, and a device with these in their
//! places (`disk::replayed`) lies under everything else. Fast commits say what was done, not
//! what blocks became; `Fast` keeps it by inode and directory, and `InodeTables`, `BlockMap` and `Listing`
//! ask there first.
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
//! The table of opens, the last run of each open, the group that was checked last, and the cache have
//! their own; none is held while another is taken.
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
mod check;
mod content;
mod directory;
mod disk;
mod ext4;
mod fast;
mod inodes;
mod journal;
mod look;
mod scan;
mod store;

pub use ext4::{EXT4, Ext4};

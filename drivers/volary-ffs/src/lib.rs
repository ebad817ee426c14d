//! The Fast File System (McKusick, Joy, Leffler and Fabry, 1984): 4.3BSD's format, UFS1 and
//! UFS2, in both byte orders. `FORMAT.md` has the bytes, `DESIGN.md` why it is done so.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | structures as stored, the checked superblock, the cache |
//! | `parameters` | what `newfs` and `tunefs` set |
//! | `inodes` | inodes as stored and in memory, where their bytes lie |
//! | `groups` | cylinder groups: maps, sums, policies and allocators |
//! | `directory` | directories as they are read, and the index of their names |
//! | `change` | a change under way: inodes, room, block maps, content, attributes |
//! | `quota` | quota files, what a change is charged |
//! | `tree` | names: making, linking, removing, renaming |
//! | `attached` | an attached volume: the commit, the operations |
//! | `look` | `info`, `dump` and `map`: a volume that is not attached |
//! | `make`, `check`, `badsect` | `mkfs`, `fsck` and bad sectors |
//!
//! `ffs` is what there is to do with a volume.
//!
//! A change is a few parts, each of which knows those above it:
//!
//! ```text
//! Edit                inodes and bytes, as they were before; Room: what is taken and freed
//! └─ Map              a file's block pointers: has Edit and Room
//!    ├─ Clusters      moves a file's new blocks into clusters
//!    ├─ Xattrs        UFS2's extended attributes
//!    └─ File          content: writing, growing, cutting; has the Epoch
//!       ├─ Attrs      attributes, the size among them
//!       └─ Entries    a directory's entries; has Lookup
//! Files               from an inode to its Map, File, Attrs: has Edit, Room and the Epoch
//! ├─ Charges          quotas
//! └─ Tree             names: has Files, Lookup and Charges
//!    ├─ Move          a rename under way
//!    └─ Attached      the operations: does changes and commits
//! ```
//!
//! `Policy` wishes where things go by the `Summary`, and `Alloc` finds room in the `Tally` of a
//! group. A commit brings the epoch to the disk in stages, in the order of soft updates.
//!
//! # Node ids
//!
//! Inode number and generation, as the format keeps them: they mean the same for ever.
//!
//! # Limits
//!
//! Snapshots (FreeBSD) answer `Unsupported` when they are opened. Apple's variant with
//! directories in chunks of 1024 bytes is not read. Nothing grows with the image but what
//! `check` keeps: a bit for each fragment and a few bytes for each inode in use; and, of a
//! volume that takes changes, 33 bytes for each cylinder group.
//!
//! A volume takes no changes if it was not cleanly left, if it has snapshots, on a device with
//! sectors of more than 512 bytes, or by a replica of the superblock.
//!
//! # Locks
//!
//! One over what is in memory (`State`): changes and commits have it alone, all else shares
//! it. Under it, for moments, those of the indexes of directories and of the cache.
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
mod badsect;
mod change;
mod check;
mod directory;
mod disk;
mod ffs;
mod groups;
mod inodes;
mod look;
mod make;
mod parameters;
mod quota;
#[cfg(test)]
mod torture;
mod tree;

pub use ffs::{FFS, Ffs};

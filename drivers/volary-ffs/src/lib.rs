//! The Fast File System (McKusick, Joy, Leffler and Fabry, 1984): 4.3BSD's format, UFS1 and UFS2,
//! in both byte orders. `FORMAT.md` describes the bytes, and `DESIGN.md` the reasons for the
//! design.
//!
//! # Rooms
//!
//! Each room may use those above it. Its `mod.rs` says what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | structures as stored, the checked superblock, the cache |
//! | `parameters` | what `newfs` and `tunefs` set |
//! | `inodes` | inodes as stored and in memory, where their bytes lie |
//! | `groups` | cylinder groups: maps, sums, policies and allocators |
//! | `directory` | reading directories, and the index of their names |
//! | `change` | a change in progress: inodes, room, block maps, content, attributes |
//! | `quota` | quota files, and what a change is charged |
//! | `tree` | names: making, linking, removing, renaming |
//! | `attached` | an attached volume: the commit, the operations |
//! | `look` | `info`, `dump` and `map` of a volume that is not attached |
//! | `make`, `check`, `badsect` | `mkfs`, `fsck` and bad sectors |
//!
//! `ffs` implements the interface of a format.
//!
//! A change consists of a few parts, each of which knows those above it:
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
//! `Policy` wishes where things should go, with the help of the `Summary`, and `Alloc` finds room
//! in the `Tally` of a group. A commit brings the epoch to the disk in stages, in the order of soft
//! updates.
//!
//! # Node ids
//!
//! A node id is the inode number and the generation, as stored. It never changes its meaning.
//!
//! # Limits
//!
//! Snapshots (FreeBSD) give `Unsupported` when they are opened. Apple's variant with directories in
//! chunks of 1024 bytes is not read.
//!
//! The memory used does not grow with the image, with two exceptions. `check` needs a bit for each
//! fragment and a few bytes for each inode in use. A volume that takes changes needs 33 bytes for
//! each cylinder group.
//!
//! A volume takes no changes if it was not cleanly left, has snapshots, or was attached by a
//! replica of the superblock. Nor does it on a device with sectors of more than 512 bytes.
//!
//! # Locks
//!
//! One lock protects what is in memory (`State`). Changes and commits hold it exclusively, and all
//! else shares it. The locks of the directory indexes and of the cache are taken below it, for
//! moments only.
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

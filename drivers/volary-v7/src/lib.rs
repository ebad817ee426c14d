//! The UNIX file system of the Seventh Edition (1979), which the Fast File System replaced, and its
//! descendant in System V, Release 4, with blocks of up to 2048 bytes. The bytes are in `FORMAT.md`.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | what is stored, in each byte order; the checked superblock, inodes, bytes of files, entries |
//! | `change` | a change, done as a whole or taken back: room, addresses, content, attributes |
//! | `tree` | a directory's entries, names, a rename under way |
//! | `attached` | an attached volume: the order in which changes come to the disk, the operations |
//! | `look` | `info`, `dump` and `map` |
//! | `make`, `check`, `tune`, `badsect` | `mkfs`, `fsck`, labels, bad blocks |
//!
//! `v7` is the [`Format`](volary_core::Format), `options` what users set.
//!
//! # How a volume is told
//!
//! System V has a magic number. The Seventh Edition has none: its superblock must fit the device,
//! all entries of both lists must be what can be free, and the root must be a directory that begins
//! with `.` and `..`, both leading to inode 2. The option `order=` believes a volume all the same.
//!
//! # Node ids
//!
//! Inode number, and a generation of eight bits in the byte behind the addresses, which other systems
//! leave alone: an id is stale until its inode has been made anew 256 times.
//!
//! # What a power cut leaves
//!
//! The format has no journal. Changes come to the disk in the order of `commit`; a cut in between leaves
//! inodes without a name, links that are counted too high, two names of a directory that was moved, and
//! always a free list and totals that are out of date. A volume that is in use says so (`s_fmod`; `s_state`
//! on System V), takes no changes after a cut, and `fsck -p` mends it. What was synced before is there.
//! Other systems do not set `s_fmod`: what they left by a crash, only `fsck` can tell.
//!
//! # Limits
//!
//! Files end at 2 GiB, or where three levels of addresses end; directories at 16 MiB. Longer directories
//! and names of other variants (Xenix, Coherent, System V Release 2) are not read. A directory is looked
//! through from its start for each name, and never gets shorter. Nothing grows with the image but two bits for each block and
//! each inode, and what `check` keeps: two bits for each block, some bytes for each inode in use.
//!
//! A volume takes no changes if it was not cleanly left, if its free list makes no sense, or on a
//! device with sectors of more than 512 bytes.
//!
//! # Locks
//!
//! One over what is in memory (`State`): changes and commits have it alone, all else shares it. Under it,
//! for moments, those of the cache.
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
mod disk;
mod look;
mod make;
mod options;
mod tree;
mod tune;
mod v7;

pub use v7::{UnixV7, V7};

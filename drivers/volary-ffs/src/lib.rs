//! The Fast File System (McKusick, Joy, Leffler and Fabry, 1984): 4.3BSD's format, UFS1 and
//! UFS2, in both byte orders.
//!
//! `volume` checks the superblock once; `inode` makes inodes of what is stored and `store`
//! the reverse, `blocks` finds their blocks, `dir` goes through directories and `index` knows
//! where their names are, `xattr` goes through
//! extended attributes, `cg` through cylinder groups; `node` keeps inodes that were changed; `ahead` reads
//! metadata before they are asked for.
//!
//! A change is an `edit`, which is done as a whole or taken back: `names`, `entries`, `attrs`,
//! `file` and `bmap` are its parts. `policy` wishes where things go, `alloc` finds room in the
//! `tally` of a group, `realloc` moves blocks into clusters before they are written, `quota` charges it to its owners, `commit` is the order in which all comes to the disk; `fs` is the
//! [`FileSystem`](volary_core::FileSystem).
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

mod ahead;
mod alloc;
mod attached;
mod attrs;
mod badsect;
mod blocks;
mod bmap;
mod cache;
mod cg;
mod check;
mod commit;
mod dir;
mod dump;
mod edit;
mod entries;
mod epoch;
mod ffs;
mod file;
mod files;
mod fs;
mod hash;
mod head;
mod index;
mod info;
mod inode;
mod listing;
mod lookup;
mod make;
mod map;
mod mistakes;
mod node;
mod ondisk;
mod policy;
mod quota;
mod realloc;
mod rename;
mod replica;
mod room;
mod scan;
mod store;
mod summary;
mod superblock;
mod sweep;
mod tally;
#[cfg(test)]
mod torture;
mod tree;
mod tune;
mod values;
mod volume;
mod xattr;

pub use ffs::{FFS, Ffs};

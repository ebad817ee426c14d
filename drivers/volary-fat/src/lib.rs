//! FAT12, FAT16 and FAT32, with VFAT's long names and DosFs's UNIX extension
//! (Forin and Malan, "An MS-DOS File System for UNIX", CMU-CS-93-196, 1993).
//! `FORMAT.md` has the bytes, `DESIGN.md` why it is done so.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | [`volume`] | structures as stored, the checked boot sector, times |
//! | `unix` | the UNIX extension in an entry, today's and the paper's |
//! | [`names`] | short and long names, code pages, what a mount shows |
//! | `table` | the FAT: chains, free clusters, its copies, the order of its writes |
//! | `base` | what an attached volume stands on: `Store` and `Epoch` |
//! | `directory` | one directory: slots as records, and the index of its names |
//! | `attached` | nodes, files, attributes, the commit, the operations |
//! | `look` | [`walk`], [`info`], [`map`] and [`dump`]: a volume that is not attached |
//! | [`make`], `check`, `tune` | `mkfs`, `fsck`, label and compaction and bad sectors |
//!
//! `options` are those of a mount; `format` is what there is to do with a volume.
//!
//! An attached volume is a few parts, each of which knows those above it:
//!
//! ```text
//! Store                 layout, cache, FAT; whether changes are taken; what waits to be free
//! ├─ Dir, Index         a directory's content, in its node
//! ├─ Commits            the epoch, nodes whose entries are to be written, marks
//! │  ├─ File            a file that is read, written or cut
//! │  └─ Owners, Attrs   what entries say of owner, mode and times, and changing that
//! ├─ Entries            entries in directories by their names
//! ├─ Parents            which directory another one is in
//! └─ Tree               from an id, a place or a name to a node: has Attrs, Entries, Nodes, Parents
//!    └─ Attached        the operations: has Commits, Tree and the opens
//!       └─ Move         a rename under way
//! ```
//!
//! # Node ids
//!
//! A directory's is its first cluster, any other node's the place of its entry. A node that is
//! moved keeps its id while it is in memory.
//!
//! # Limits
//!
//! Files of 4 GiB less a byte, without holes; 65,536 slots in a directory; 2047 pairs of owner and
//! group; targets of symlinks of 4095 bytes; one name for each node. What is in memory (cache, FAT,
//! nodes, indexes) is bounded by the mount's share.
//!
//! A volume takes no changes by a copy of its boot sector, nor once a part of its FAT could be read
//! from another copy alone.
//!
//! # Locks
//!
//! In this order, from the outside in:
//!
//! ```text
//! moving                    operations on more than one directory
//! └─ body of directories    of a rename: the old name's, the new one's, that of what is replaced
//!    └─ adding              a row of the table of owners
//!       └─ body of files
//!          └─ marking       the dirty mark
//!             └─ epoch      changes share it, a commit has it alone
//!                └─ nodes
//!                   └─ meta of a node
//!                      └─ for moments: dirty nodes, births, owners, parents; the FAT; the cache
//! ```
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
mod base;
mod check;
mod directory;
mod format;
mod look;
pub mod make;
pub mod names;
mod options;
mod table;
mod tune;
mod unix;
pub mod volume;

pub use format::{FAT, Fat};
pub use look::{dump, info, map, walk};

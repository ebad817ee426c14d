//! Cedar's file system with a log (Hagmann, "Reimplementing the Cedar File
//! System Using Logging and Group Commit", SOSP 1987), on today's devices.
//!
//! All that is known of a file stands in one B-tree, the file name table, whose
//! pages are written twice, far apart. Changes of it go to a redo log first, many
//! in one record; pages go home only when the log comes round to the third in
//! which their newest image is. `FORMAT.md` has the bytes,
//! `DESIGN.md` why it is done so.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | pages as stored, the checked root, runs, leader pages, checksums of data |
//! | `space` | what the allocation map is made of: pages in use, room kept for open files, changes in records |
//! | `name_table` | the file name table as stored: cells, pages in two copies, entries |
//! | `log` | records and anchors as stored |
//! | `commit` | the volume below names: changes, the allocation map, group commit in thirds of the log |
//! | `tree` | the name table as a B-tree, walks of it |
//! | `change` | nodes, content, names, versions, checksums: changes that are made whole or not at all |
//! | `recover` | attaching: recovery from the log |
//! | `attached` | an attached volume: names, attributes, opens, listings, options |
//! | `remote` | files of a remote: links, the cache, the connection, fetching |
//! | `look` | `info`, `dump`, `map` and labels: a volume that is not attached |
//! | `make`, `check` | `mkfs` and `fsck` |
//!
//! `cedar` is what there is to do with a volume.
//!
//! An attached volume is a few parts, each of which knows those above it:
//!
//! ```text
//! Txn, Batch          what an operation has changed; what is committed together
//! LogState, Leaders   where the log stands; leaders that have yet to go home
//! └─ AllocationMap    the map, what is kept behind open files, what of it has yet to go home
//!    └─ Core          group commit over these, layout, cache and pages of the table
//!       ├─ Tree       the name table as a tree, and walks of it
//!       └─ Files      the core, opens, checksums that wait, nodes that leave; does changes
//!          └─ Nodes   heads, places, runs and parts: has Tree
//!             └─ Sealing                       checksums of data
//!                └─ Versions, File, Names, Links    older versions; content; names; the remote's nodes
//!                   ├─ Steps, Leaving         growth in as few changes as it takes; nodes that leave
//!                   └─ Attrs, Xattrs, OpenFiles, Listing    what there is to do with a node or an open
//!                      └─ Attached            names; attaching and leaving
//! ```
//!
//! # Limits
//! Names of 255 bytes (90 in pages of 512), 2^32 pages, files in about a million pieces
//! (110,000 in pages of 512; without chains as many as a record holds). Extended attributes of a node and targets
//! of symlinks are bounded by what one log record holds. Versions are made when
//! a file is emptied or replaced, not when it is written in place.
//!
//! # Locks
//! One: an attached volume is behind a mutex, data too. It is not held while a remote is
//! asked; `remote::attached` says what is.
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
mod cedar;
mod change;
mod check;
mod commit;
mod disk;
mod log;
mod look;
mod make;
mod mistakes;
mod name_table;
mod recover;
mod remote;
mod space;
mod tree;

#[cfg(test)]
mod torture;

pub use cedar::{CEDAR, Cedar};
pub use disk::ondisk::seal;
pub use disk::volume::Layout;

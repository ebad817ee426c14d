//! Cedar's file system with a log (Hagmann, "Reimplementing the Cedar File
//! System Using Logging and Group Commit", SOSP 1987), on today's devices.
//!
//! All that is known of a file stands in one B-tree, the file name table, whose
//! pages are written twice, far apart. Changes of it go to a redo log first, many
//! in one record; pages go home only when the log comes round to the third in
//! which their newest image is. `FORMAT.md` has the bytes,
//! `DESIGN.md` why it is done so.
//!
//! | module | what |
//! |---|---|
//! | `ondisk`, `volume`, `roots` | pages as stored; the checked root, and its copies |
//! | `page`, `tree`, `table` | cells in pages, pages in a tree, the tree on the device |
//! | `log`, `commit`, `recover` | records, group commit and thirds, recovery |
//! | `vam`, `reserve`, `delta`, `map_home`, `logged_map` | room: in memory, kept for open files, in records, at home |
//! | `runs`, `leader`, `sums`, `sealing` | where files lie, leader pages, checksums of data |
//! | `core` | the volume below names: pages of the table, room, leaders, the batch |
//! | `files`, `found` | opens and changes that are made whole or not at all; what is wrong in passing |
//! | `entry`, `nodes`, `names`, `versions`, `file`, `ahead`, `steps`, `xattrs`, `cookies` | what UNIX asks of it |
//! | `remote` | files of a remote: links, the cache, the connection, fetching |
//! | `check`, `dump`, `make` and others | the tools |
//!
//! An attached volume is a few parts, each of which knows those above it:
//!
//! ```text
//! Core               layout, cache, pages of the table, room, the log, the batch; commits
//! ├─ Tree            the name table as a tree, and walks of it
//! └─ Files           the core, opens, checksums that wait, nodes that leave; does changes
//!    └─ Nodes        heads, places, runs and parts: has Tree
//!       └─ Sealing   checksums of data
//!          └─ Versions, File, Names, Links    older versions; content; names; the remote's nodes
//!             └─ Attached                     the operations
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

mod ahead;
mod attached;
mod cedar;
mod check;
mod commit;
mod cookies;
mod core;
mod cut_off;
mod delta;
mod dump;
mod entry;
mod file;
mod files;
mod found;
mod fs;
mod info;
mod leader;
mod log;
mod logged_map;
mod make;
mod map;
mod map_home;
mod mistakes;
mod names;
mod nodes;
mod ondisk;
mod options;
mod page;
mod recover;
mod remote;
mod reserve;
mod roots;
mod runs;
mod sealing;
mod steps;
mod sums;
mod table;
mod tree;
mod tune;
mod vam;
mod versions;
mod volume;
mod walk;
mod xattrs;

#[cfg(test)]
mod torture;

pub use cedar::{CEDAR, Cedar};
pub use ondisk::seal;
pub use volume::Layout;

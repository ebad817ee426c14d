//! A read-only driver for ISO 9660 (ECMA-119), with Joliet, Rock Ridge (IEEE P1282 over SUSP, IEEE
//! P1281) and El Torito.
//!
//! # Rooms
//!
//! Each room may use those above it. Its `mod.rs` says what is in it.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `disk` | descriptors, the checked volume, directory records, names and times; the cache |
//! | `extensions` | Rock Ridge and the fields it uses, El Torito; the choice of names |
//! | `tree` | directories, nodes made from records, walks, the names of one file |
//! | `attached` | an attached volume: options, opens, operations |
//! | `look`, `check` | `info`, `dump` and `map`; `fsck -n` |
//!
//! `iso` implements the interface of a format.
//!
//! # Node ids
//!
//! A file's id is the byte offset of its directory record. A directory's id is that of its own
//! first record (`.`). Ids never change their meaning, and are the same on every copy of the image.
//!
//! All names of one file have the id of the lowest record. Rock Ridge says how many names there
//! are, and they share the serial number and the data. An id is accepted if a record begins there.
//! A client that guesses ids sees no more than a reader of the image.
//!
//! # Limits
//!
//! Interleaved files and files with more than 4096 sections give `Unsupported` when they are
//! opened. Compressed files (`ZF`) are shown as stored, and associated files are not shown.
//!
//! The memory used does not grow with the image, with two exceptions. One is the table of files
//! with several names, which is bounded (see `tree::links`). The other is what `check` and `map`
//! note for each directory.
//!
//! # Locks
//!
//! The table of opens and the cache have a lock each. Neither is held while another is taken.
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
mod disk;
mod extensions;
mod iso;
mod look;
mod tree;

pub use iso::{ISO9660, Iso9660};

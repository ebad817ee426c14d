//! ISO 9660 (ECMA-119), for reading, with Joliet, Rock Ridge (IEEE P1282 over
//! SUSP, IEEE P1281) and El Torito.
//!
//! `descriptors` and `volume` read what describes the volume, `choice` chooses the names; `dir` goes through
//! directories, `susp` and `rockridge` through what Rock Ridge keeps in them;
//! `node` makes nodes of records, `links` knows which are names of one file; `fs` is the [`FileSystem`](volary_core::FileSystem).
//!
//! # Node ids
//!
//! A file is known by the byte offset of its directory record, a directory by that
//! of its own first record (`.`): ids mean the same for ever, on every copy of
//! the image. Names of one file (Rock Ridge says how many there are; they
//! share serial number and data) have the id of the lowest record. An id is
//! believed if a record begins there; who makes ids up sees no more than who
//! reads the image.
//!
//! # Limits
//!
//! Interleaved files and files past 4096 sections answer `Unsupported` when they
//! are opened; compressed files (`ZF`) are shown as they are stored; files that are
//! associated with others are not shown. Nothing grows with the image but the table
//! of names of files that have several (bounded, see `links`), and what `check`
//! and `map` note for each directory.
//!
//! # Locks
//!
//! The table of opens and the cache have their own; neither is held while another
//! is taken.
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
mod boot;
mod check;
mod choice;
mod date;
mod descriptors;
mod dir;
mod dump;
mod fs;
mod info;
mod iso;
mod links;
mod map;
mod names;
mod node;
mod ondisk;
mod path;
mod record;
mod rockridge;
mod susp;
mod volume;
mod walk;

pub use iso::{ISO9660, Iso9660};

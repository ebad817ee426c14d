//! Bulk reads: whole files of a volume, in the order in which they lie on its device.
//!
//! A program that backs up, scans or hashes a tree does not care which file comes first.
//! [`BulkFileRead`] makes use of that. It asks the volume where the bytes of all files are, and
//! sorts the fragments by their place. Then it reads them in few large requests, assembles the
//! files, and delivers each one whole. The method is DAFT's (Guo and Chiueh, "DAFT: Disk
//! Geometry-Aware File System Traversal"). `DESIGN.md` gives the reasons.
//!
//! # What a run guarantees
//!
//! - **Each file once.** Each name below the places of a [`Source`] is delivered once: as a node,
//!   with its content, or as failed. A directory comes before its entries. The engine chooses the
//!   order of files. The bytes of each are those that [`Session::read`] would return.
//! - **Whole.** A file of at most [`Options::whole_max`] bytes comes in one piece, without a copy
//!   if it is one extent. A larger one comes in chunks, in order, with nothing else between them on
//!   that thread.
//! - **Bounded.** [`Options::memory`] bounds the list of fragments, the read-ahead, the files being
//!   assembled and the buffers that consumers still hold. A list that does not fit is processed in
//!   parts. Not counted are some hundred bytes for each directory, and at most a mebibyte for
//!   entries and for drivers.
//! - **The ordinary way** is a fallback for each file. It serves encoded files (inline, compressed,
//!   encrypted), files without known extents, read errors of the device, and files that have
//!   changed. Such a file is read through the session. The consumer sees that ([`Way`]), and errors
//!   are the session's.
//! - **Consistent.** A source is attached read-only or frozen. Otherwise it is
//!   [live](Source::live): the node's attributes are compared after the read, and a file that has
//!   changed is read again.
//! - **Nothing stops the rest.** A file or directory that cannot be read is reported and counted.
//! - **Metadata in order, too.** A driver that gains from it ([`FileSystem::prefetch`]) reads
//!   directories and then all inodes in them in device order. On other drivers, the tree is just
//!   walked.
//! - **Listing and reading at once.** Files are gathered in parts of 64 MiB, or of as many files as
//!   fit into the list. Without a device to read in order, a part has 16 MiB. While one part is
//!   read, the next is listed. A device that seeks is not asked for both at a time, and its parts
//!   are as large as the list. So are parts of scattered files. Memory that a list does not use
//!   goes to files that are being assembled.
//!
//! This crate reads no clock itself, only [`Options::clock`]. The engine's threads end with the
//! run.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `interface` | what a program says and is told: [`Options`], [`Source`], [`Consumer`], [`Summary`] |
//! | `listing` | files and their fragments, in few bytes; merged into requests, spread over sweeps |
//! | `state` | the state of a run and of a part; memory; measuring devices |
//! | `walk` | phase 1: names, attributes and fragments |
//! | `delivering` | files to the consumer; those that need no sweep, through the session or in chunks |
//! | `sweeps` | phase 2: reading ahead in order, assembling files; a loader's order |
//! | `run` | processes the list part by part |
//! | `files` | a run as an iterator |
//!
//! Each room may use those above it in this table, except `walk`, which only `run` uses. Its
//! `mod.rs` says what is in it.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod delivering;
mod files;
mod interface;
mod listing;
mod run;
mod state;
mod sweeps;
mod walk;

pub use files::{Content, Files, Read};
pub use interface::delivery::{Consumer, File, Part, Range, Way, Why};
pub use interface::options::{Cleaning, Clock, Method, Options, Shuffle};
pub use interface::source::Source;
pub use interface::summary::Summary;
pub use run::BulkFileRead;
pub use state::probe::moves;
#[cfg(doc)]
use volary_core::FileSystem;
#[cfg(doc)]
use volary_session::Session;

//! Bulk reads: whole files of a volume, in the order in which they lie on its device.
//!
//! Who backs up, scans or hashes a tree does not care which file comes first. [`BulkFileRead`] takes
//! that freedom: it asks the volume where the bytes of all files are, sorts the fragments by their
//! place, reads them in few large requests, puts the files together, and hands over each one whole.
//! The method is DAFT's (Guo and Chiueh, "DAFT: Disk Geometry-Aware File System Traversal").
//! `DESIGN.md` says why it is done so.
//!
//! # What is true of a run
//!
//! - **Each file once.** Each name below the places of a [`Source`] is told of once: as a node, with
//!   its content, or as failed. A directory comes before what is in it. The order of files is
//!   the engine's; the bytes of one file are those that [`Session::read`] would give.
//! - **Whole.** A file of at most [`Options::whole_max`] bytes comes in one piece, without a copy where
//!   it is one extent. A larger one comes in chunks, in order, and nothing else comes between on
//!   that thread.
//! - **Bounded.** The list of fragments, what is read ahead, what is being put together and what
//!   consumers have not let go of never take more than [`Options::memory`]. A list that does not fit
//!   is worked through in parts. Besides there are some hundred bytes for each directory, and a mebibyte
//!   at most for entries that are looked at and for what drivers need for a moment.
//! - **The ordinary way** is open for each file: what is encoded (inline, compressed, encrypted), what a
//!   layer or a driver does not give places of, what a device cannot read, what has changed. It is
//!   read through the session then, the consumer is told so ([`Way`]), and an error is the session's.
//! - **Consistent.** A source is attached read-only or frozen; or it is [live](Source::live), and the
//!   node's attributes are looked at after the read: a file that has changed is read again.
//! - **Nothing stops the rest.** A file or directory that cannot be read is told of and counted.
//! - **Metadata in order, too.** A driver that gains from it ([`FileSystem::prefetch`]) reads directories
//!   and then all inodes in them as they lie. Others are walked.
//! - **Listing and reading at once.** Files are gathered in parts, of 64 MiB (16 MiB where there is no
//!   device to read in order) or as many as fit into the list: while one part is read, the next one is
//!   listed. A device that has to move something to find a place is not asked for both at a time, and
//!   its parts are as large as the list; so are those of files that lie among others. What a list
//!   leaves of its share is for files that are put together.
//!
//! No clock is read here: [`Options::clock`] has one. The engine starts threads, which end with the run.
//!
//! | module | what |
//! |---|---|
//! | [`options`](Options) | how to read |
//! | [`source`](Source) | what to read |
//! | [`delivery`](Consumer) | what consumers are told |
//! | `walk`, `list`, `packed` | phase 1: names, attributes, fragments; one part of them at a time, in few bytes |
//! | `plan` | fragments to requests; files to passes |
//! | `ahead`, `sweep` | phase 2: reading ahead in order, putting files together |
//! | `ordinary`, `fetch`, `together`, `large` | files that are read through the session, ahead of their turn, many at the same time, and in chunks |
//! | `shuffle` | a loader's order |
//! | `run`, `part` | goes through the parts of what is listed; what a run and a part are |
//! | `budget`, `outlet`, `probe` | memory, consumers' threads, what a device likes |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod ahead;
mod budget;
mod delivery;
mod fetch;
mod files;
mod large;
mod list;
mod options;
mod ordinary;
mod outlet;
mod packed;
mod part;
mod plan;
mod probe;
mod run;
mod shuffle;
mod source;
mod summary;
mod sweep;
mod together;
mod walk;

pub use delivery::{Consumer, File, Part, Range, Way, Why};
pub use files::{Content, Files, Read};
pub use options::{Cleaning, Clock, Method, Options, Shuffle};
pub use probe::moves;
pub use run::BulkFileRead;
pub use source::Source;
pub use summary::Summary;
#[cfg(doc)]
use volary_core::FileSystem;
#[cfg(doc)]
use volary_session::Session;

//! The conformance kit of volary. It checks a driver against the contract of
//! [`FileSystem`](volary_core::FileSystem). A report names the sentence that was broken, the case,
//! and the operations that led to it.
//!
//! # A driver that only reads
//!
//! Store the [`mod@reference`] tree in your format. [`Manifest::write_dir`] and
//! [`Manifest::write_tar`] produce it for a tool that packs files. [`Manifest::fill`] writes it
//! into a volume whose driver can write. Remove [what the format cannot keep](Lack) from the
//! manifest, and run [`Suite::reading`].
//!
//! The suite checks paths, kinds, sizes, attributes, links, parents, and bytes at every kind of
//! offset. It reads listings with buffers of all sizes and from every cookie, tries stale ids and
//! opens, and checks that every change is refused. On Linux it measures the memory of the process:
//! for a byte of the large file, and for what is opened and closed again and again.
//!
//! ```
//! use std::sync::Arc;
//! use volary_core::{Fs, Time};
//! use volary_mem::{Mem, MemOptions};
//! use volary_test::{Suite, Within, reference};
//!
//! // In place of your own driver: a volume in memory that holds the tree and refuses changes.
//! let caps = MemOptions::default().caps;
//! let manifest = reference::tree().fitting(&caps);
//! let held = manifest.clone();
//! let make = move || {
//!     let fs = Mem::attach(MemOptions::default(), Time::EPOCH).unwrap();
//!     held.fill(&fs).unwrap();
//!     let root = fs.root();
//!     Arc::new(Within::new(fs, root).only_read()) as Fs
//! };
//! let report = Suite::reading("mine", make, &manifest).only("statfs_makes_sense").run();
//! assert_eq!(report.passed, ["statfs_makes_sense"]);
//! ```
//!
//! If you have no tree, [`Suite::coherent`] works on a volume with any content. It checks that all
//! ways to read the volume agree.
//!
//! # A driver that takes changes
//!
//! [`Suite::new`] makes an empty volume for each case. Define how the volume is attached again
//! ([`Fresh::reattach`], [`Fresh::read_only`]); the cases that need it are otherwise reported as
//! skipped. [`everywhere`] runs the suite directly, under layers and through the servers of volary.
//!
//! # Results
//!
//! [`Suite::run`] panics if a case fails; [`Suite::report`] returns the [`Report`] as a value. A
//! case that hangs fails after [a minute](Suite::limit), and the report names it.
//! `VOLARY_CASE=name` runs one case alone. The command `volary conform` runs the suite on a volume
//! or a mounted directory.
//!
//! | module | content |
//! |---|---|
//! | [`suite`] | the suite: cases, their selection, reports |
//! | [`mod@reference`], [`manifest`] | the expected content of a volume that is read |
//! | [`damage`] | damaged volumes: drivers must not panic or hang |
//! | [`hostfs`] | a mounted directory as a volume |
//! | [`nfs`], `smb` | clients of servers as volumes (`smb` with the feature `smb-client`) |
//! | [`tree`], [`digest`] | a whole volume, or a file's content, as one value |
//! | [`rng`] | random numbers from a seed |
//!
//! Everything here runs in tests, so it panics with a message where other code returns an error.
#![forbid(unsafe_code)]

mod cases;
pub mod damage;
pub mod digest;
mod everywhere;
mod full;
pub mod hostfs;
pub mod manifest;
mod memory;
pub mod nfs;
pub mod reference;
mod remote;
#[cfg(feature = "smb-client")]
pub mod smb;
pub mod suite;
pub mod tree;
mod trying;
mod within;

pub use volary_sim::rng;

pub use everywhere::{Everywhere, everywhere};
pub use manifest::{Lack, Manifest};
pub use suite::{Case, Failure, Fresh, Report, Suite};
pub use trying::{Tried, try_out};
pub use within::Within;

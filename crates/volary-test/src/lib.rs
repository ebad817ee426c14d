//! The conformance kit of volary: it holds a driver to the contract of
//! [`FileSystem`](volary_core::FileSystem), and says which sentence of it was broken, in which case,
//! by which operations.
//!
//! # A driver that only reads
//!
//! Write the [`mod@reference`] tree as your format has it: [`Manifest::write_dir`] and
//! [`Manifest::write_tar`] give a tool of yours something to pack, [`Manifest::fill`] fills a volume by
//! a driver that writes. Take out [what the format cannot keep](Lack), and run [`Suite::reading`]. It
//! holds paths, kinds, sizes, bytes at every kind of offset, attributes, links, the way up, listings in
//! buffers of every size and from every cookie, stale ids and opens, and that every change is refused.
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
//! Without a tree at hand, [`Suite::coherent`] holds whatever a volume holds against itself: all ways to
//! read it must agree.
//!
//! # A driver that takes changes
//!
//! [`Suite::new`] makes an empty volume for each case. Say how it is attached again
//! ([`Fresh::reattach`], [`Fresh::read_only`]), or the cases that need it are skipped, and count as
//! skipped. [`everywhere`] runs the suite plain, under layers and through the servers of volary.
//!
//! # What a run tells
//!
//! [`Suite::run`] panics if a case fails; [`Suite::report`] returns the [`Report`] as a value. A case
//! that hangs fails by its name after [a minute](Suite::limit). `VOLARY_CASE=name` runs one alone. On
//! the command line, `volary conform` does all this to a volume or a mounted directory.
//!
//! | module | what |
//! |---|---|
//! | [`suite`] | the suite: cases, their choice, reports |
//! | [`mod@reference`], [`manifest`] | what a volume that is read should hold |
//! | [`damage`] | volumes with damage: nothing in them may be worse than an error |
//! | [`hostfs`] | a mounted directory as a volume |
//! | [`nfs`], `smb` | clients of servers as volumes (`smb` with the feature `smb-client`) |
//! | [`tree`], [`digest`] | a whole volume as one value |
//! | [`rng`] | random numbers from a seed |
//!
//! Everything here runs in tests, so what goes wrong panics with a sentence.
#![forbid(unsafe_code)]

mod cases;
pub mod damage;
pub mod digest;
mod everywhere;
pub mod hostfs;
pub mod manifest;
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

//! Building blocks for drivers, so that a driver deals with its format and nothing else.
//!
//! | module | what |
//! |---|---|
//! | [`readonly`] | makes a file system from a list of entries and the bytes of files |
//! | [`Bytes`] | a range of a device, read with bounds checks, at offsets or as a stream |
//! | [`Streams`] | compressed files, read at any offset |
//! | [`Checked`] | a stream that fails at its end if its checksum does not match |
//! | [`attr`] | makes attributes of a file, directory or symlink in a line |
//! | [`Opens`], [`SharedOpens`] | the open table: ids, `Stale`, detach |
//!
//! A driver is one value that implements [`Format`](volary_core::Format): a name, the kinds of its
//! volumes, and how to recognise and attach one. The traits are in [`volary_core`], which is
//! re-exported as [`core`].
//!
//! For example, an archive of one file, whose name and text fill the device:
//!
//! ```
//! use std::sync::Arc;
//! use volary_driver::core::{Attach, BlockDevice, Format, Fs, Probe, Result};
//! use volary_driver::{Bytes, readonly};
//! use readonly::{Item, Listing, Tree};
//!
//! struct Note(Bytes);
//!
//! impl Tree for Note {
//!     /// Where its text begins.
//!     type File = u64;
//!     fn list(&self, out: &mut Listing<u64>) -> Result<()> {
//!         let name = self.0.array::<8>("the name", 5)?;
//!         out.add(&name, Item::file(self.0.len() - 13, 13))
//!     }
//!     fn read(&self, at: &u64, offset: u64, buf: &mut [u8]) -> Result<()> {
//!         self.0.read("the text", at + offset, buf)
//!     }
//! }
//!
//! struct Notes;
//!
//! impl Format for Notes {
//!     fn name(&self) -> &'static str {
//!         "note"
//!     }
//!     fn kinds(&self) -> &'static [&'static str] {
//!         &["note"]
//!     }
//!     fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
//!         Ok(Bytes::begins_with(dev, 0, b"NOTE:")?.then_some(Probe { kind: "note", label: None }))
//!     }
//!     fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
//!         readonly::attach("note", Note(Bytes::whole(dev)), how)
//!     }
//! }
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

pub mod attr;
mod bytes;
pub mod readonly;
mod streams;

pub use bytes::{Allowance, Bytes, Cursor};
pub use streams::{Checked, Streams};
pub use volary_core as core;
pub use volary_ondisk::{Closed, Count, Opens, SharedOpens};

//! NTFS, for reading.
//!
//! `ondisk` has the structures as they are stored; `volume` is the boot sector, checked; `fixup` tells torn
//! writes; `record` is one record of the master file table, `mft` where the table lies, `store` what reads it,
//! `opening` what finds it; `node` is a file with all records that it goes on in; `stream` is what an attribute
//! holds, by `runs`, packed by `lznt1` or in its record; `index`, `dir` and `upcase` are directories; `reparse` and
//! `form` say what a node is, `security`, `attr` and `xattr` what else there is to know of it; `metafiles` reads
//! `$UpCase` and `$Secure`; `ahead` reads before it is asked; `fs` is the
//! [`FileSystem`](volary_core::FileSystem).
//!
//! # Node ids
//!
//! A record's number and its sequence number. `FILE:STREAM` is a node of its own: above the 48 bits of the record's
//! number stands which of the file's named streams it is. `$MFT`, record 0, has a number above all.
//!
//! # Limits
//!
//! The log is not replayed: a volume that was not left cleanly is read as it stands, and says so. Encrypted
//! data answer `Unsupported`, and so do files whose reparse point says that their data are elsewhere. An open keeps where the parts
//! of its runs are, and the runs of one part at a time. The check keeps a bit for each
//! cluster in use, and some bytes for each record in use.
//!
//! # Locks
//!
//! The table of opens, the last part and the last unit of each open, the descriptors that were looked at, findings
//! and the cache have their own; none is held while another is taken.
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
mod attr;
mod check;
mod dir;
mod dump;
mod extents;
mod fixup;
mod form;
mod fs;
mod index;
mod info;
mod lznt1;
mod map;
mod metafiles;
mod mft;
mod names;
mod node;
mod ntfs;
mod ondisk;
mod opening;
mod record;
mod reparse;
mod runs;
mod scan;
mod security;
mod state;
mod store;
mod stream;
mod upcase;
mod volume;
mod xattr;

pub use ntfs::{NTFS, Ntfs};

//! NTFS, for reading.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `disk` | structures as stored, the checked boot sector, update sequences, runs, names, clusters |
//! | `mft` | the master file table and its records |
//! | `files` | nodes, what their attributes hold, bitmaps; finds the `$MFT` |
//! | `directory` | indexes, directories, the order of names |
//! | `attributes` | kinds, owners, modes and times, security descriptors, extended attributes |
//! | `store` | an opened volume, which hands out its parts |
//! | `state` | whether the volume was left cleanly |
//! | `scan` | goes through all records in use |
//! | `attached` | an attached volume: the options, the opens and the operations |
//! | `look`, `check` | `info`, `dump` and `map`; `fsck -n` |
//!
//! `ntfs` is what there is to do with a volume.
//!
//! # Parts
//!
//! What is in memory of a volume is in the parts of a `Store`. What is in memory of a file is in a `Node`,
//! a `Stream` or a `Directory`, which read by the `Mft` that they are given:
//!
//! ```text
//! Attached               the opens and the operations; has a Store
//! Store                  an opened volume
//! ├─ Mft                 records, by the Table, which knows where they lie
//! │  └─ Clusters         the device and its cache
//! ├─ Collation           `$UpCase`, once it was asked for
//! ├─ Secure              descriptors of `$Secure` that were read before
//! ├─ Attributes          kind and attributes of a node; has Mft and Secure
//! └─ Xattrs              a node's extended attributes; has Mft and Secure
//!
//! Directory              looks up and lists
//! └─ Index               a tree of entries: its root, its blocks and their bitmap
//!    └─ Stream           what an attribute holds: bytes of its record, or clusters
//!       └─ Node          a base record with its attribute list
//! ```
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

mod attached;
mod attributes;
mod check;
mod directory;
mod disk;
mod files;
mod look;
mod mft;
mod ntfs;
mod scan;
mod state;
mod store;

pub use ntfs::{NTFS, Ntfs};

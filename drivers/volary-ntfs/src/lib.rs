//! NTFS, for reading.
//!
//! # Rooms
//!
//! Each may use those above it. The comment at its head says what it contains.
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
//! `ntfs` implements the format.
//!
//! # Parts
//!
//! Everything in memory about a volume is in the parts of a `Store`. Everything about a file is in
//! a `Node`, a `Stream` or a `Directory`. These read through the `Mft` that they are given:
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
//! An id is a record's number and its sequence number. `FILE:STREAM` is a node of its own: the bits
//! above the 48 bits of the record number are the number of the named stream. `$MFT`, record 0, has
//! a number above all others.
//!
//! # Limits
//!
//! The log is not replayed. A volume that was not left cleanly is read as it is, and this is
//! reported. Encrypted data answer `Unsupported`, and so do files whose reparse point says that
//! their data are elsewhere.
//!
//! An open keeps the places of its mapping pairs, and the runs of one part at a time. The check
//! keeps one bit for each cluster in use, and some bytes for each record in use.
//!
//! # Locks
//!
//! Each of these has its own lock: the table of opens, the last part and the last unit of each
//! open, the kept descriptors, findings, and the cache. No lock is held while another is taken.
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

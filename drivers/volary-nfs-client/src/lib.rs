//! An NFS export as a volume: the counterpart of FIFS's FSNFS.
//!
//! A driver without an on-disk format: each operation becomes calls of NFS version 3 (RFC 1813)
//! over TCP. `nfs://HOST[:PORT]/EXPORT[?options]` names an export; [`OPTIONS`] lists the options,
//! which follow the `?` or `-o`. If a port is given, NFS is there, and so is MOUNT unless an option
//! says otherwise. Without one, the server's portmapper is asked, and port 2049 is tried if there
//! is none. Times come from the server's own clock; [`Ctx::now`](volary_core::Ctx::now) is not
//! used.
//!
//! # Rooms
//!
//! Each room may use those above it. Its first lines say what it contains.
//!
//! | room | what |
//! |---|---|
//! | `wire` | NFS's structures; errors of the protocol; records |
//! | `server` | connections, calls that outlive them; portmapper, MOUNT, the server's capabilities |
//! | `known` | caches of nodes and names, and how long they are valid; bytes in memory |
//! | `calls` | calls on nodes and on entries, whose replies fill the caches |
//! | `content` | read-ahead and write-behind; attributes that include written data |
//! | `opens` | the opens and their positions in listings; NLM, reclaiming locks after a restart of the server |
//! | `attached` | files, names, listings, open files without names; the `FileSystem` |
//!
//! `location` parses the names of exports, `fail` makes our errors, `timer` is the host's clock.
//!
//! An attached volume is a few parts, each of which knows those above it:
//!
//! ```text
//! Export                  calls of NFS; whether it is attached, and takes changes
//! ├─ Entries              a directory's entries, by calls: has Nodes and NameCache
//! ├─ Ahead                what is read ahead of a file, by Workers
//! │  └─ Behind            what is written behind, by Workers: drops what was read ahead
//! │     ├─ Room           how much the server has left
//! │     ├─ Attrs          attributes and rights, once the server has what was written
//! │     └─ Files          content by opens: has Ahead, Behind, Room
//! ├─ Claims               locks that the server gave: has Nlm
//! │  └─ Locks             locks by opens: has Claims, Owners
//! ├─ Tree                 from a name to a node: has Entries, Attrs
//! ├─ HiddenFiles          open files that have no name: has Entries, Attrs, Behind
//! │  └─ Names             names made, removed and moved: has Tree, HiddenFiles, Opens
//! ├─ Dirs                 listings: has Entries, Attrs
//! └─ Attached             the operations: has all of them, Opens and Mount
//! ```
//!
//! # What is cached, and for how long
//!
//! Attributes, rights and names are valid for `cache` seconds, and shorter if a reply contradicts
//! them. Close-to-open consistency is exact. `close` makes all written data durable on the server.
//! `open` fetches the attributes again, and data that was read ahead of another content is dropped.
//! Locks are taken at the server if it has NLM, and end with the open; if the server restarts, they
//! are reclaimed (`Claims`).
//!
//! # Writing
//!
//! Writes are gathered, sent UNSTABLE, and kept until a COMMIT shows that the server has not
//! restarted since; if it has, they are sent again. A failure after `write` has returned is
//! reported by the next `write`, `fsync` or `close` of the file. With the option `sync`, and if the
//! server's volume is nearly full, each write is sent to the server before it returns.
//!
//! # Nodes
//!
//! A node's number is the server's `fileid`; a hash of its handle tells it from earlier nodes with
//! that number. So an id never means another node. An id is `Stale` if it was dropped from the
//! cache since, or is from an earlier attachment. An open file that is removed lives on under a
//! name (`.volary-nfs-…`) that is not listed here. A process that is killed leaves such names
//! behind.
//!
//! # What a malicious server can do
//!
//! It can fail calls. No call takes longer than `timeout`; replies are limited to the requested
//! size; a listing whose cookies repeat is `Corrupt`. Memory for bytes and nodes stays within
//! [`NfsOptions::memory`], except for a few pieces of a megabyte, and for nodes that are in use.
//!
//! # Lock order
//!
//! These locks are held during calls, in this order from the outside in:
//!
//! ```text
//! naming                  names that must stay free between two calls
//! └─ going of a node      while it is opened, or its last name may go
//!    ├─ io of a node      its content is read or changed
//!    │  └─ room           of the server
//!    └─ hidden of a node  of one which the call is not about
//! listing of an open
//! run of Claims
//! ```
//!
//! A node's `known` and `data`, the tables and the connections are leaves. They have no order,
//! except that `known` comes before `hidden` when attributes are shown.
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
mod calls;
mod content;
mod fail;
mod known;
mod location;
mod opens;
mod server;
mod timer;
mod wire;

pub use attached::attach::attach;
pub use location::{Location, NfsOptions, OPTIONS};

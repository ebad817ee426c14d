//! An NFS export as a volume: what FIFS has as FSNFS.
//!
//! A driver without a format on disk: each operation becomes calls of NFS version
//! 3 (RFC 1813) over TCP. `nfs://HOST[:PORT]/EXPORT[?options]` names an export;
//! [`OPTIONS`] lists what may stand after the `?` or after `-o`. With a port, NFS
//! is there, and so is MOUNT unless said otherwise; without one, the server's
//! portmapper is asked, and port 2049 tried if there is none. Times are the
//! server's: it has a clock of its own, and
//! [`Ctx::now`](volary_core::Ctx::now) is not asked.
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `wire` | NFS's structures; errors of the protocol; records |
//! | `server` | connections, calls that outlive them; portmapper, MOUNT, what the server can do |
//! | `known` | what is known of nodes and names, and for how long; bytes that are here |
//! | `calls` | calls on nodes and on entries, whose replies go into what is known |
//! | `content` | what is read ahead and written behind; attributes with what was written in them |
//! | `opens` | the opens, where their listings are; NLM, locks after a restart of the server |
//! | `attached` | files, names, listings, open files that have no name; the `FileSystem` |
//!
//! `location` is how exports are named, `fail` our words for what goes wrong, `timer` the host's clock.
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
//! # What is believed, and for how long
//!
//! Attributes, rights and names are believed for `cache` seconds, and less if a
//! reply says otherwise. From close to open it is exact: `close` has the server
//! have all that was written, `open` asks for the attributes anew, and what was read
//! ahead of another content is dropped. Locks are taken at the server where it has
//! NLM, and end with the open; when it was restarted, they are claimed again (`Claims`).
//!
//! # Writing
//!
//! Writes are gathered, sent UNSTABLE, and kept until a COMMIT that says that the
//! server was not restarted since; if it was, they are sent again. What fails after
//! `write` has answered is told by the next `write`, `fsync` or `close` of the file.
//! With the option `sync`, and near the end of the server's room, each write is the
//! server's before it is answered.
//!
//! # Nodes
//!
//! A node's number is the server's `fileid`; a hash of its handle tells it from
//! others that have had it. So an id never means another node, but one that was
//! forgotten, because there were many others since, is `Stale`, and so is one from
//! before a restart of ours. An open file that is removed lives on under a name
//! (`.volary-nfs-…`) that is not listed here; who dies meanwhile leaves it behind.
//!
//! # What a server can do to us
//!
//! Fail, with an error. No call takes longer than `timeout`; replies are bounded by
//! what was asked for; a listing whose places come again is `Corrupt`. Memory for
//! bytes and nodes stays within [`NfsOptions::memory`], but for a few pieces of a
//! megabyte, and but for nodes that are in use.
//!
//! # Lock order
//!
//! These are held over calls, in this order, from the outside in:
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
//! A node's `known` and `data`, the tables, the connections: leaves, in no order, but that
//! `known` comes before `hidden` where attributes are shown.
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
